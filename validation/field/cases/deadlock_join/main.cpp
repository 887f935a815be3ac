// shut_down joins a thread while it holds sessions_lock, for which that thread waits, in
// end_session.
#include "account.h"
#include <mutex>
#include <thread>

static std::mutex sessions_lock;
static std::thread session;

APART static void end_session() {
    nap_us(200000);
    std::lock_guard<std::mutex> guard(sessions_lock);
    puts("not reached");
}
APART static void shut_down() {
    std::lock_guard<std::mutex> guard(sessions_lock);
    session.join();
    puts("not reached");
}
static void *controller(void *with) { shut_down(); return with; }

int main(int argc, char **argv) {
    session = std::thread([] {
        pthread_setname_np(pthread_self(), "session");
        end_session();
    });
    start("controller", controller, nullptr);
    run_for(argc, argv);
    puts("truth: controller joins session under sessions_lock; session waits for it");
    quit();
}

// The event loop took cache_mutex once, did not release it (an early return in forget_release), and
// has idled in epoll_wait with a listener since. Three workers wait for ever. The program's other
// lock, stats_mutex, goes on.
#include "account.h"
#include <mutex>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static std::mutex cache_mutex, stats_mutex;
static account stats{"stats_mutex", 0, 0, 0};

APART static void forget_release() {
    std::unique_lock<std::mutex> guard(cache_mutex);
    guard.release();
}
static void *event_loop(void *with) {
    forget_release();
    int server = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    bind(server, (sockaddr *)&any, sizeof any);
    listen(server, 5);
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(poll, EPOLL_CTL_ADD, server, &event);
    for (;;) epoll_wait(poll, &event, 1, -1);
    return with;
}
APART static void fill_cache() {
    nap_us(100000);
    std::lock_guard<std::mutex> guard(cache_mutex);
    puts("not reached");
}
static void *worker(void *with) { fill_cache(); return with; }
static void *counter(void *with) {
    for (;;) {
        uint64_t asked = now_ns();
        {
            std::lock_guard<std::mutex> guard(stats_mutex);
            uint64_t got = now_ns();
            compute_us(20);
            book(&stats, asked, got);
        }
        nap_us(3000);
    }
    return with;
}

int main(int argc, char **argv) {
    start("event_loop", event_loop, nullptr);
    for (int i = 0; i < 3; i++) start("worker", worker, nullptr);
    for (int i = 0; i < 2; i++) start("counter", counter, nullptr);
    run_for(argc, argv);
    puts("truth: event_loop took cache_mutex and will never release it");
    tell(&stats);
    quit();
}

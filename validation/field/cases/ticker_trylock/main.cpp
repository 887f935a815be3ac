// Four threads take a std::mutex by try_lock and yield: nobody sleeps, and those who do not get it
// use up CPUs. Held nearly all the time by one that computes 0.5 ms in rebuild_levels; about 2.8
// want it in vain.
#include "account.h"
#include <mutex>
#include <thread>

static struct {
    std::mutex mutex;
    uint64_t levels[512];
} order_book;
static account of_book{"order_book.mutex", 0, 0, 0};

APART static void rebuild_levels() {
    for (uint64_t &level : order_book.levels) level++;
    compute_us(500);
    STAY;
}
static void *feed(void *with) {
    for (;;) {
        uint64_t asked = now_ns();
        while (!order_book.mutex.try_lock()) std::this_thread::yield();
        uint64_t got = now_ns();
        rebuild_levels();
        book(&of_book, asked, got);
        order_book.mutex.unlock();
        nap_us(50);
    }
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 4; i++) start("feed", feed, nullptr);
    run_for(argc, argv);
    tell(&of_book);
    quit();
}

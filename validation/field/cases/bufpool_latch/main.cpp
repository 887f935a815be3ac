// A page's latch like InnoDB's: bit 31 of a word says that it is held, the other bits count those
// who hold or want it; nothing says who holds it. Held 98% by one that sleeps 1.8 ms in flush_page;
// 4.8 of 6 threads wait in wait_and_fix.
#include "account.h"
#include <atomic>
#include <linux/futex.h>
#include <sys/syscall.h>

class PageLatch {
    static constexpr uint32_t HOLDER = 1u << 31;
    std::atomic<uint32_t> word{0};

    APART void wait_and_fix() {
        uint32_t seen = 1 + word.fetch_add(1, std::memory_order_acquire);
        for (;;) {
            if (seen & HOLDER) {
                syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
                seen = word.load(std::memory_order_acquire);
            } else {
                seen = word.fetch_or(HOLDER, std::memory_order_acquire);
                if (!(seen & HOLDER)) return;
            }
        }
    }

public:
    void fix() {
        uint32_t zero = 0;
        if (!word.compare_exchange_strong(zero, HOLDER + 1, std::memory_order_acquire))
            wait_and_fix();
    }
    void unfix() {
        if (word.fetch_sub(HOLDER + 1, std::memory_order_release) != HOLDER + 1)
            syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
};
static struct {
    PageLatch latch;
    char page[4096];
} root_frame;
static account of_latch{"root_frame.latch", 0, 0, 0};

APART static void flush_page() {
    root_frame.page[0]++;
    nap_us(1800);
    STAY;
}
static void *purger(void *with) {
    for (;;) {
        compute_us(250);
        uint64_t asked = now_ns();
        root_frame.latch.fix();
        uint64_t got = now_ns();
        flush_page();
        book(&of_latch, asked, got);
        root_frame.latch.unfix();
    }
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 6; i++) start("purger", purger, nullptr);
    run_for(argc, argv);
    tell(&of_latch);
    quit();
}

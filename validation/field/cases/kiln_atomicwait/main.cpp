// A lock made of std::atomic<int>::wait: held 99% by one that sleeps 2.5 ms in fire_batch; 3.6 of 5
// threads wait. The word is 1 and does not say who holds it.
#include "account.h"
#include <atomic>

class KilnDoor {
    std::atomic<int> shut{0};

public:
    void close() {
        while (shut.exchange(1, std::memory_order_acquire)) shut.wait(1, std::memory_order_relaxed);
    }
    void open() {
        shut.store(0, std::memory_order_release);
        shut.notify_one();
    }
};
static KilnDoor door;
static account of_door{"door", 0, 0, 0};

APART static void fire_batch() { nap_us(2500); STAY; }
APART static void glaze() { nap_us(1000); STAY; }
static void *potter(void *with) {
    for (;;) {
        uint64_t asked = now_ns();
        door.close();
        uint64_t got = now_ns();
        fire_batch();
        book(&of_door, asked, got);
        door.open();
        glaze();
    }
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 5; i++) start("potter", potter, nullptr);
    run_for(argc, argv);
    tell(&of_door);
    quit();
}

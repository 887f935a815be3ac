// std::counting_semaphore with one permit is a lock: 5 of 6 threads wait for the sixth, which
// sleeps 3 ms in convert. They do not wait for work.
#include "account.h"
#include <semaphore>

static std::counting_semaphore<8> licence{1};
static account of_licence{"licence", 0, 0, 0};

APART static void convert() {
    uint64_t asked = now_ns();
    licence.acquire();
    uint64_t got = now_ns();
    nap_us(3000);
    book(&of_licence, asked, got);
    licence.release();
    STAY;
}
static void *converter(void *with) {
    for (;;) convert();
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 6; i++) start("converter", converter, nullptr);
    run_for(argc, argv);
    tell(&of_licence);
    quit();
}

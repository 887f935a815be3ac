// Started by a shell that executes it after 0.3 s: one lock, cart_lock, held 98%, asleep in
// check_out; queue nearly 4. The shell itself has no lock.
#include "account.h"

static pthread_mutex_t cart_lock = PTHREAD_MUTEX_INITIALIZER;
static struct account cart = {"cart_lock", 0, 0, 0};

APART static void check_out(void) {
    uint64_t asked = now_ns();
    pthread_mutex_lock(&cart_lock);
    uint64_t got = now_ns();
    nap_us(2000);
    book(&cart, asked, got);
    pthread_mutex_unlock(&cart_lock);
    STAY;
}
static void *customer(void *with) {
    for (;;) { check_out(); compute_us(20); }
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 5; i++) start("customer", customer, NULL);
    run_for(argc, argv);
    tell(&cart);
    quit();
}

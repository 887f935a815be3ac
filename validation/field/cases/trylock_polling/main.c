// Four threads poll for device_lock: a trylock, and 500 us of sleep if it fails. It is held 94% and
// more, by one that sleeps 15 ms in flush_device. No thread waits in the lock, but 3 to 4 wait for
// it.
#include "account.h"

static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static struct account device = {"device_lock", 0, 0, 0};
static struct account pollers = {"device_lock (pollers)", 0, 0, 0};

APART static void flush_device(void) {
    uint64_t asked = now_ns();
    pthread_mutex_lock(&device_lock);
    uint64_t got = now_ns();
    nap_us(15000);
    book(&device, asked, got);
    pthread_mutex_unlock(&device_lock);
    STAY;
}
APART static void poll_device(void) {
    uint64_t asked = now_ns();
    while (pthread_mutex_trylock(&device_lock)) usleep(500);
    uint64_t got = now_ns();
    book(&pollers, asked, got);
    pthread_mutex_unlock(&device_lock);
    STAY;
}
static void *flusher(void *with) {
    for (;;) { flush_device(); nap_us(100); }
    return with;
}
static void *poller(void *with) {
    for (;;) { poll_device(); compute_us(50); }
    return with;
}

int main(int argc, char **argv) {
    start("flusher", flusher, NULL);
    for (int i = 0; i < 4; i++) start("poller", poller, NULL);
    run_for(argc, argv);
    tell(&device);
    tell(&pollers);
    quit();
}

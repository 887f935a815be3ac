// Five threads set and unset variables of their own: each call takes the C library's lock of the
// environment, and walks through 2,000 variables under it. It is held nearly all the time; queue 3
// to 4 of 5. main only sleeps.
#include "account.h"

static uint64_t calls, inside;

APART static void publish_setting(const char *name) {
    uint64_t asked = now_ns();
    setenv(name, "on", 1);
    unsetenv(name);
    count(&inside, now_ns() - asked);
    count(&calls, 2);
    STAY;
}
static void *setter(void *with) {
    char name[32];
    snprintf(name, sizeof name, "SETTING_%ld", (long)with);
    for (;;) publish_setting(name);
    return with;
}

int main(int argc, char **argv) {
    char name[32];
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "VARIABLE_NUMBER_%d", i);
        setenv(name, "x", 1);
    }
    for (long i = 0; i < 5; i++) start("setter", setter, (void *)i);
    run_for(argc, argv);
    printf("truth: %lu calls, %.2f of 5 threads in setenv or unsetenv\n", calls,
           (double)inside / (double)(now_ns() - started_ns));
    quit();
}

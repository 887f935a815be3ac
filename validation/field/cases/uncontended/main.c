// Two threads take locks of their own in a tight loop, which nobody else wants.
#include "account.h"

static struct { pthread_mutex_t lock; char pad[88]; uint64_t sum; } own[2];
APART static void add_own(int nth) {
    pthread_mutex_lock(&own[nth].lock);
    own[nth].sum++;
    pthread_mutex_unlock(&own[nth].lock);
}
static void *adder(void *with) { for (;;) add_own((int)(long)with); return with; }
int main(int argc, char **argv) {
    for (long i = 0; i < 2; i++) {
        pthread_mutex_init(&own[i].lock, NULL);
        start("adder", adder, (void *)i);
    }
    run_for(argc, argv);
    printf("truth: nobody waits\n");
    quit();
}

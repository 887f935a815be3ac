// An initialiser asks for its own initialisation: pthread_once waits for itself for ever. Three
// more threads wait for it, and main for their end.
#include "account.h"

static pthread_once_t plugins_once = PTHREAD_ONCE_INIT;

static void load_plugins(void);
APART static void need_plugins(void) { pthread_once(&plugins_once, load_plugins); STAY; }
APART static void load_plugins(void) { nap_us(20000); need_plugins(); STAY; }
static void *worker(void *with) { need_plugins(); return with; }

int main(void) {
    pthread_t threads[4];
    alarm(7);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}

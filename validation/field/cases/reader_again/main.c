// A thread reads settings, and reads again (in a function that it calls) while a writer waits. With
// a lock that prefers writers it waits for the writer, who waits for it. Two more want to read.
#include "account.h"

static pthread_rwlock_t settings;

APART static void look_up(void) {
    pthread_rwlock_rdlock(&settings);
    puts("not reached");
    STAY;
}
APART static void render(void) {
    pthread_rwlock_rdlock(&settings);
    nap_us(200000);
    look_up();
    STAY;
}
APART static void change(void) {
    nap_us(100000);
    pthread_rwlock_wrlock(&settings);
    puts("not reached");
    STAY;
}
static void *renderer(void *with) { render(); return with; }
static void *changer(void *with) { change(); return with; }
static void *viewer(void *with) { nap_us(300000); look_up(); return with; }

int main(int argc, char **argv) {
    pthread_rwlockattr_t writers_first;
    pthread_rwlockattr_init(&writers_first);
    pthread_rwlockattr_setkind_np(&writers_first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&settings, &writers_first);
    start("renderer", renderer, NULL);
    start("changer", changer, NULL);
    start("viewer", viewer, NULL);
    start("viewer", viewer, NULL);
    run_for(argc, argv);
    puts("truth: renderer reads again behind changer, who waits for renderer");
    quit();
}

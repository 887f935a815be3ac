// A System V semaphore of one is a lock between threads (semop with SEM_UNDO): 3 of 4 wait in semop
// for the fourth, which sleeps 5 ms in post_batch. They do not wait for work.
#include "account.h"
#include <sys/ipc.h>
#include <sys/sem.h>

static int set;
static struct account batch = {"batch semaphore", 0, 0, 0};

static void change(short by) {
    struct sembuf operation = {0, by, SEM_UNDO};
    while (semop(set, &operation, 1)) pause(); // it is gone at the end
}
APART static void post_batch(void) {
    uint64_t asked = now_ns();
    change(-1);
    uint64_t got = now_ns();
    nap_us(5000);
    book(&batch, asked, got);
    change(1);
    STAY;
}
static void *poster(void *with) {
    for (;;) { post_batch(); compute_us(20); }
    return with;
}

int main(int argc, char **argv) {
    set = semget(IPC_PRIVATE, 1, 0600);
    semctl(set, 0, SETVAL, 1);
    for (int i = 0; i < 4; i++) start("poster", poster, NULL);
    run_for(argc, argv);
    semctl(set, 0, IPC_RMID);
    tell(&batch);
    quit();
}

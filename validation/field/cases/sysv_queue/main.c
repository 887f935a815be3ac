// A buffer of four items between two processes, counted by two System V semaphores: the consumer
// waits 90% of the time for the items of the producer, which sleeps 8 ms for each. No lock.
#include "account.h"
#include <signal.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/sem.h>

static int set;
enum { ITEMS, ROOM };

static void change(unsigned short semaphore, short by) {
    struct sembuf operation = {semaphore, by, 0};
    if (semop(set, &operation, 1)) _exit(0); // it is gone at the end
}
APART static void produce(void) {
    nap_us(8000);
    change(ROOM, -1);
    change(ITEMS, 1);
    STAY;
}
APART static void consume(void) {
    change(ITEMS, -1);
    change(ROOM, 1);
    nap_us(500);
    STAY;
}

int main(int argc, char **argv) {
    set = semget(IPC_PRIVATE, 2, 0600);
    semctl(set, ROOM, SETVAL, 4);
    for (int i = 0; i < 2; i++) {
        if (fork()) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) i ? consume() : produce();
    }
    run_for(argc, argv);
    semctl(set, 0, IPC_RMID);
    quit();
}

// A System V semaphore of one is a lock between five processes (semop with SEM_UNDO): held 99% by
// one that computes 1 ms and sleeps 4 ms in visit_vault; 3.6 wait in semop. They do not wait for
// work.
#include "account.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>

static int set;
static struct account *account;

static void turn_door(short by) {
    struct sembuf operation = {0, by, SEM_UNDO};
    while (semop(set, &operation, 1)) pause(); // it is gone at the end
}
APART static void visit_vault(void) { compute_us(1000); nap_us(4000); STAY; }
APART static void teller(void) {
    uint64_t asked = now_ns();
    turn_door(-1);
    uint64_t got = now_ns();
    visit_vault();
    book(account, asked, got);
    turn_door(1);
    nap_us(2000);
}

int main(int argc, char **argv) {
    account = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    account->name = "vault door";
    set = semget(IPC_PRIVATE, 1, 0600);
    semctl(set, 0, SETVAL, 1);
    for (int i = 0; i < 5; i++) {
        if (fork()) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) teller();
    }
    run_for(argc, argv);
    semctl(set, 0, IPC_RMID);
    tell(account);
    quit();
}

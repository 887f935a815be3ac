// Four processes contend for a record lock of ledger.lock (lockf), held 99% by one asleep in post,
// for 8 ms: three wait. No disk, no work to wait for.
#include "account.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>

static struct account *ledger;

APART static void post(int file) {
    uint64_t asked = now_ns();
    if (lockf(file, F_LOCK, 0)) abort();
    uint64_t got = now_ns();
    nap_us(8000);
    book(ledger, asked, got);
    if (lockf(file, F_ULOCK, 0)) abort();
    STAY;
}

int main(int argc, char **argv) {
    ledger = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ledger->name = "ledger.lock";
    for (int i = 0; i < 4; i++) {
        if (fork()) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int file = open("ledger.lock", O_RDWR | O_CREAT, 0600);
        for (;;) { post(file); nap_us(200); }
    }
    run_for(argc, argv);
    tell(ledger);
    quit();
}

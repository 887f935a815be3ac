// Four processes contend for a lock file: mail.lock, which whoever makes it (O_EXCL) deletes again.
// Held 90% and more by one asleep in deliver, for 100 ms; the others poll for it in grab_lock, each
// 5 ms. About three wait for it, and for nothing else.
#include "account.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static struct account *account;

APART static void grab_lock(void) {
    int file;
    while ((file = open("mail.lock", O_WRONLY | O_CREAT | O_EXCL, 0600)) < 0) nap_us(5000);
    close(file);
}
APART static void deliver(void) { nap_us(100000); STAY; }
APART static void agent(void) {
    uint64_t asked = now_ns();
    grab_lock();
    uint64_t got = now_ns();
    deliver();
    book(account, asked, got);
    unlink("mail.lock");
    nap_us(10000);
}

int main(int argc, char **argv) {
    account = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    account->name = "mail.lock";
    unlink("mail.lock");
    for (int i = 0; i < 4; i++) {
        if (fork()) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) agent();
    }
    run_for(argc, argv);
    tell(account);
    quit();
}

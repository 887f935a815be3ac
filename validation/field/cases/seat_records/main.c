// Five processes contend for a record lock of some bytes of seats.dat (fcntl with F_SETLKW), held
// 99% by one asleep in take_payment, for 4 ms: 3.5 wait. No disk, no work to wait for.
#include "account.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { RECORD = 128, WANTED = 7 };
static struct account *account;

static void lock_record(int file, short type) {
    struct flock range = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = WANTED * RECORD, .l_len = RECORD};
    if (fcntl(file, F_SETLKW, &range)) abort();
}
APART static void take_payment(void) { nap_us(4000); STAY; }
APART static void book_seat(int file) {
    uint64_t asked = now_ns();
    lock_record(file, F_WRLCK);
    uint64_t got = now_ns();
    take_payment();
    book(account, asked, got);
    lock_record(file, F_UNLCK);
    STAY;
}

int main(int argc, char **argv) {
    account = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    account->name = "record 7 of seats.dat";
    for (int i = 0; i < 5; i++) {
        if (fork()) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int file = open("seats.dat", O_RDWR | O_CREAT, 0600);
        for (;;) { book_seat(file); nap_us(2000); }
    }
    run_for(argc, argv);
    tell(account);
    quit();
}

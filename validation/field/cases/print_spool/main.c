// Five threads, each with descriptors of its own, contend for the file lock of queue.idx (flock),
// held 98% by one asleep in rewrite_index, for 3 ms: 3.3 wait. Each then sleeps 2 ms with a lock of
// its own page of pages.dat, for which nobody waits. No disk, no work to wait for.
#include "account.h"
#include <fcntl.h>
#include <sys/file.h>

static struct account account = {"queue.idx", 0, 0, 0};

APART static void rewrite_index(int file) {
    if (pwrite(file, "job", 3, 0) != 3) abort();
    nap_us(3000);
}
APART static void claim_job(int file) {
    uint64_t asked = now_ns();
    if (flock(file, LOCK_EX)) abort();
    uint64_t got = now_ns();
    rewrite_index(file);
    book(&account, asked, got);
    flock(file, LOCK_UN);
    STAY;
}
APART static void print_page(int file, int page) {
    struct flock range = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = page * 4096, .l_len = 4096};
    if (fcntl(file, F_OFD_SETLKW, &range)) abort();
    nap_us(2000);
    range.l_type = F_UNLCK;
    if (fcntl(file, F_OFD_SETLKW, &range)) abort();
    STAY;
}
static void *spooler(void *with) {
    int index = open("queue.idx", O_RDWR | O_CREAT, 0600);
    int pages = open("pages.dat", O_RDWR | O_CREAT, 0600);
    for (;;) { claim_job(index); print_page(pages, gettid()); }
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 5; i++) start("spooler", spooler, NULL);
    run_for(argc, argv);
    tell(&account);
    quit();
}

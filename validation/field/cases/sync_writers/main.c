// Three threads append a page to a file of their own and wait for the disk (fdatasync), about all
// the time. No lock of the program.
#include "account.h"
#include <fcntl.h>

static uint64_t pages, waited;

APART static void save_page(int file) {
    static char page[4096];
    uint64_t from = now_ns();
    if (write(file, page, sizeof page) != sizeof page || fdatasync(file)) abort();
    count(&waited, now_ns() - from);
    if (lseek(file, 0, SEEK_CUR) > 1 << 24) lseek(file, 0, SEEK_SET);
    count(&pages, 1);
    STAY;
}
static void *saver(void *with) {
    char name[64];
    snprintf(name, sizeof name, "/var/tmp/field-pages-%ld", (long)with);
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    unlink(name);
    for (;;) save_page(file);
    return with;
}

int main(int argc, char **argv) {
    for (long i = 0; i < 3; i++) start("saver", saver, (void *)i);
    run_for(argc, argv);
    printf("truth: %lu pages, %.2f of 3 threads in write and fdatasync; no lock\n", pages,
           (double)waited / (double)(now_ns() - started_ns));
    quit();
}

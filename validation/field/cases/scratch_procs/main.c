// Three processes of one thread each map 8 MiB, write to each page in thumbnail, and unmap them:
// they compute, mostly in the kernel. Each has an address space of its own, so that nobody waits
// for its lock. No lock at all.
#include "account.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static const size_t size = 8u << 20;
static uint64_t *done;

APART static void thumbnail(void) {
    char *scratch = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (scratch == MAP_FAILED) abort();
    madvise(scratch, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += 4096) scratch[at] = 1;
    munmap(scratch, size);
    count(done, 1);
}

int main(int argc, char **argv) {
    done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3; i++) {
        if (fork()) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) thumbnail();
    }
    run_for(argc, argv);
    printf("truth: %lu thumbnails in processes of one thread; no lock\n", *done);
    quit();
}

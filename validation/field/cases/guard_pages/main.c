// The kernel's lock of the address space is held nearly all the time by the sealer, whose mprotect
// of 256 MiB computes in the kernel. Four threads that map and unmap 64 KiB in use_scratch wait for
// it in mmap and munmap most of the time. No lock of the program, no disk, no work to wait for.
#include "account.h"
#include <sys/mman.h>

static const size_t image_size = 256u << 20, scratch_size = 64u << 10;
static char *image;
static uint64_t in_calls, sealing;

static char *map(size_t size) {
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) abort();
    return at;
}
APART static void seal_image(int protection) {
    uint64_t from = now_ns();
    if (mprotect(image, image_size, protection)) abort();
    count(&sealing, now_ns() - from);
}
APART static void use_scratch(void) {
    uint64_t from = now_ns();
    char *scratch = map(scratch_size);
    count(&in_calls, now_ns() - from);
    memset(scratch, 7, scratch_size);
    from = now_ns();
    munmap(scratch, scratch_size);
    count(&in_calls, now_ns() - from);
}
static void *sealer(void *with) {
    for (;;) { seal_image(PROT_READ); seal_image(PROT_READ | PROT_WRITE); }
    return with;
}
static void *request(void *with) {
    for (;;) { use_scratch(); nap_us(200); }
    return with;
}

int main(int argc, char **argv) {
    image = map(image_size);
    madvise(image, image_size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < image_size; at += 4096) image[at] = 1;
    start("sealer", sealer, NULL);
    for (int i = 0; i < 4; i++) start("request", request, NULL);
    run_for(argc, argv);
    double all = (double)(now_ns() - started_ns);
    printf("truth: %.2f of 4 threads are in mmap and munmap, one in mprotect %.0f%%\n",
           (double)in_calls / all, 100 * (double)sealing / all);
    quit();
}

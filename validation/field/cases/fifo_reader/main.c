// Three threads read a named pipe, into which one thread writes a byte each 20 ms: they wait for a
// pipe, and a pipe with a name is no disk. No lock.
#include "account.h"
#include <fcntl.h>
#include <sys/stat.h>

static int commands;
static uint64_t bytes;

APART static void next_command(void) {
    char byte;
    if (read(commands, &byte, 1) == 1) count(&bytes, 1);
    STAY;
}
static void *reader(void *with) {
    for (;;) next_command();
    return with;
}
static void *writer(void *with) {
    for (;;) {
        nap_us(20000);
        if (write(commands, "x", 1) != 1) abort();
    }
    return with;
}

int main(int argc, char **argv) {
    unlink("commands.fifo");
    if (mkfifo("commands.fifo", 0600)) return 1;
    commands = open("commands.fifo", O_RDWR);
    for (int i = 0; i < 3; i++) start("reader", reader, NULL);
    start("writer", writer, NULL);
    run_for(argc, argv);
    printf("truth: %lu bytes, three threads wait for a pipe; no lock\n", bytes);
    quit();
}

// Four threads write lines to one FILE, whose pipe a slow reader empties: its lock is held nearly
// all the time by one asleep in write, called by fputs in log_line; queue 3. main sleeps in
// join_all.
#include "account.h"
#include <fcntl.h>

static FILE *journal;
static uint64_t lines, inside;

APART static void log_line(long who) {
    char line[200];
    snprintf(line, sizeof line, "%ld %0150d\n", who, 7);
    uint64_t asked = now_ns();
    fputs(line, journal);
    count(&inside, now_ns() - asked);
    count(&lines, 1);
    STAY;
}
static void *writer(void *with) {
    for (;;) log_line((long)with);
    return with;
}
static void *reader(void *with) {
    char some[4096];
    for (;;) {
        nap_us(2000);
        if (read((int)(long)with, some, sizeof some) <= 0) return with;
    }
}
APART static void join_all(int argc, char **argv) { run_for(argc, argv); STAY; }

int main(int argc, char **argv) {
    int ends[2];
    if (pipe(ends)) return 1;
    fcntl(ends[1], F_SETPIPE_SZ, 4096);
    journal = fdopen(ends[1], "w");
    start("reader", reader, (void *)(long)ends[0]);
    for (long i = 0; i < 4; i++) start("writer", writer, (void *)i);
    join_all(argc, argv);
    printf("truth: %lu lines; %.2f threads in fputs, one of which holds the FILE's lock\n", lines,
           (double)inside / (double)(now_ns() - started_ns));
    quit();
}

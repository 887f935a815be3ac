// A C11 mutex, sensor_mutex, is held 99% by one that waits for an answer in select, called by
// read_sensor in sample; queue nearly 3.
#include "account.h"
#include <sys/select.h>
#include <threads.h>

static mtx_t sensor_mutex;
static struct account sensor = {"sensor_mutex", 0, 0, 0};
static int line[2];

APART static void read_sensor(void) {
    fd_set set;
    struct timeval most = {0, 6000};
    FD_ZERO(&set);
    FD_SET(line[0], &set);
    select(line[0] + 1, &set, NULL, NULL, &most);
    STAY;
}
APART static void sample(void) {
    uint64_t asked = now_ns();
    mtx_lock(&sensor_mutex);
    uint64_t got = now_ns();
    read_sensor();
    book(&sensor, asked, got);
    mtx_unlock(&sensor_mutex);
    STAY;
}
static int sampler(void *with) {
    for (;;) { sample(); compute_us(20); }
    return with != NULL;
}

int main(int argc, char **argv) {
    thrd_t thread;
    if (pipe(line)) return 1;
    mtx_init(&sensor_mutex, mtx_timed);
    for (int i = 0; i < 4; i++) thrd_create(&thread, sampler, NULL);
    run_for(argc, argv);
    tell(&sensor);
    quit();
}

// Two threads of GCC's OpenMP share the work of a day unequally, 20 and 4 ms in route_water: one
// waits 80% of the time, for the other, at the barrier that ends the loop. No lock.
#include "account.h"

static uint64_t waited, days;

APART static uint64_t route_water(int basin) {
    compute_us(basin ? 4000 : 20000);
    return now_ns();
}

int main(int argc, char **argv) {
    uint64_t end = started_ns + (uint64_t)(1e9 * (argc > 1 ? atof(argv[1]) : 7));
    for (; now_ns() < end; days++) {
        uint64_t ended[2];
#pragma omp parallel for schedule(static, 1) num_threads(2)
        for (int basin = 0; basin < 2; basin++) ended[basin] = route_water(basin);
        waited += ended[0] > ended[1] ? ended[0] - ended[1] : ended[1] - ended[0];
    }
    printf("truth: %.2f of 2 threads wait for the other's work, %lu days; no lock\n",
           (double)waited / (double)(now_ns() - started_ns), days);
    quit();
}

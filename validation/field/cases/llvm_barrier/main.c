// A barrier of LLVM's OpenMP (clang -fopenmp), with threads of unequal work: two wait in it 16 of
// 20 ms for the third, which is in plan_route meanwhile. They spin and yield their CPUs. No lock.
#include "account.h"
#include <omp.h>

static uint64_t waited;

APART static void plan_route(int number) { nap_us(number ? 4000 : 20000); STAY; }

int main(int argc, char **argv) {
    uint64_t end = started_ns + (uint64_t)(1e9 * (argc > 1 ? atof(argv[1]) : 7));
    int go_on = 1;
#pragma omp parallel num_threads(3)
    while (go_on) {
        plan_route(omp_get_thread_num());
        uint64_t from = now_ns();
#pragma omp barrier
        count(&waited, now_ns() - from);
#pragma omp single
        go_on = now_ns() < end;
    }
    printf("truth: %.2f of 3 threads wait at the barrier; no lock\n",
           (double)waited / (double)(now_ns() - started_ns));
    quit();
}

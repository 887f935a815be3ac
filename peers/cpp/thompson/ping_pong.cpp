// A reconstruction of the C++ program of "Inter Thread Latency" (M. Thompson, Mechanical Sympathy,
// August 2011).
//
// Two adjacent counters share a cache line. Each is incremented by one thread only, with a locked
// add. The first thread waits until the second's counter has caught up with its own, then
// increments; the second does the opposite. As in the article, there is no pause hint and no
// padding.
//
//   ping_pong CPU_A CPU_B MILLISECONDS BLOCKS
//
// prints a line for each block: round trips, nanoseconds, nanoseconds for one way (half a round
// trip). The first block only warms up and is not printed. The article's program runs 500 million
// round trips; this one runs by time, so that it can take turns with threadtoll.

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

struct alignas(128) Counters {
    volatile std::int64_t ping = 0;
    volatile std::int64_t pong = 0;
} counters;

std::int64_t target = 0;
pthread_barrier_t gate;
bool over = false;

std::int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
        std::fprintf(stderr, "cannot run on CPU %d\n", cpu);
        std::exit(1);
    }
}

void* answer(void* cpu) {
    pin(*static_cast<int*>(cpu));
    for (;;) {
        pthread_barrier_wait(&gate);
        if (over) return nullptr;
        std::int64_t value = counters.pong;
        while (value < target) {
            while (value == counters.ping) {
            }
            value = __sync_add_and_fetch(&counters.pong, 1);
        }
    }
}

// Runs `round_trips` round trips and returns their duration.
std::int64_t block(std::int64_t round_trips) {
    target = counters.pong + round_trips;
    pthread_barrier_wait(&gate);
    const std::int64_t start = now_ns();
    std::int64_t value = counters.ping;
    while (counters.ping < target) {
        while (counters.pong != value) {
        }
        value = __sync_add_and_fetch(&counters.ping, 1);
    }
    while (counters.pong != value) {
    }
    return now_ns() - start;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 5) {
        std::fprintf(stderr, "usage: %s CPU_A CPU_B MILLISECONDS BLOCKS\n", arguments[0]);
        return 2;
    }
    const int first = std::atoi(arguments[1]);
    int second = std::atoi(arguments[2]);
    const std::int64_t wanted_ns = std::atoll(arguments[3]) * 1'000'000;
    const int blocks = std::atoi(arguments[4]);
    if (first < 0 || second < 0 || first == second || wanted_ns <= 0 || blocks <= 0) {
        std::fprintf(stderr, "two different CPUs, a time and a number of blocks are needed\n");
        return 2;
    }
    pthread_barrier_init(&gate, nullptr, 2);
    pthread_t thread;
    if (pthread_create(&thread, nullptr, answer, &second) != 0) return 1;
    pin(first);
    std::int64_t round_trips = 100'000;
    for (int index = 0; index <= blocks; ++index) {
        const std::int64_t elapsed = block(round_trips);
        if (index > 0) {
            std::printf("%" PRId64 " %" PRId64 " %.3f\n", round_trips, elapsed,
                        static_cast<double>(elapsed) / static_cast<double>(round_trips) / 2.0);
            std::fflush(stdout);
        }
        round_trips = round_trips * wanted_ns / (elapsed > 0 ? elapsed : 1);
        if (round_trips < 1000) round_trips = 1000;
    }
    over = true;
    pthread_barrier_wait(&gate);
    pthread_join(thread, nullptr);
    return 0;
}

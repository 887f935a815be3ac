// A pool of 8 threads waits on a condition variable for jobs, of which one comes each 50 ms. No
// lock matters: threads wait for other threads, for 99% of the time.
#include "account.h"
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

static std::mutex jobs_mutex;
static std::condition_variable job_came;
static std::deque<std::function<void()>> jobs;
static uint64_t done;

APART static std::function<void()> next_job() {
    std::unique_lock<std::mutex> guard(jobs_mutex);
    while (jobs.empty()) job_came.wait(guard);
    auto job = jobs.front();
    jobs.pop_front();
    return job;
}
static void *worker(void *with) {
    for (;;) next_job()();
    return with;
}
static void *source(void *with) {
    for (;;) {
        nap_us(50000);
        std::lock_guard<std::mutex> guard(jobs_mutex);
        jobs.push_back([] { compute_us(2000); count(&done, 1); });
        job_came.notify_one();
    }
    return with;
}

int main(int argc, char **argv) {
    for (int i = 0; i < 8; i++) start("worker", worker, nullptr);
    start("source", source, nullptr);
    run_for(argc, argv);
    printf("truth: %lu jobs, no lock\n", done);
    quit();
}

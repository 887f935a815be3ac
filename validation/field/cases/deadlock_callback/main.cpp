// A listener adds a listener while Hub::publish holds the hub's mutex: the publisher waits for a
// lock that it holds itself. Two more threads wait for it.
#include "account.h"
#include <functional>
#include <mutex>
#include <vector>

struct Hub {
    std::mutex listeners_mutex;
    std::vector<std::function<void()>> listeners;
    APART void add(std::function<void()> listener) {
        std::lock_guard<std::mutex> guard(listeners_mutex);
        listeners.push_back(listener);
    }
    APART void publish() {
        std::lock_guard<std::mutex> guard(listeners_mutex);
        for (auto &listener : listeners) listener();
        STAY;
    }
};
static Hub hub;

static void *publisher(void *with) { hub.publish(); return with; }
static void *late(void *with) {
    nap_us(200000);
    hub.add([] {});
    return with;
}

int main(int argc, char **argv) {
    hub.add([] { hub.add([] {}); puts("not reached"); });
    start("publisher", publisher, nullptr);
    start("late", late, nullptr);
    start("late", late, nullptr);
    run_for(argc, argv);
    puts("truth: publisher waits for listeners_mutex, which it holds");
    quit();
}

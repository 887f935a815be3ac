// boost::lockfree::spsc_queue without adapter and tool; see pair.h.
//
//   g++ -std=c++17 -O3 -march=native -DNDEBUG -pthread -o boost_spsc boost_spsc.cpp

#include "pair.h"

#include <boost/lockfree/spsc_queue.hpp>

#include <memory>

using Queue = boost::lockfree::spsc_queue<uint64_t>;

static std::unique_ptr<Queue> queues[2];

static void make(size_t capacity) {
    for (auto& queue : queues) queue = std::make_unique<Queue>(capacity);
}

OPERATION void push(int queue, uint64_t message) {
    while (!queues[queue]->push(message)) {
    }
}

OPERATION uint64_t pop(int queue) {
    uint64_t message;
    while (!queues[queue]->pop(message)) {
    }
    return message;
}

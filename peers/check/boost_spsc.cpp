// boost::lockfree::spsc_queue without adapter and tool; see pair.h.
//
//   g++ -std=c++17 -O3 -march=native -DNDEBUG -pthread -o boost_spsc boost_spsc.cpp

#include <boost/lockfree/spsc_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace {

using Queue = boost::lockfree::spsc_queue<std::uint64_t>;

std::unique_ptr<Queue> queues[2];

void make(std::size_t capacity) {
    for (auto& queue : queues) queue = std::make_unique<Queue>(capacity);
}

void push(int queue, std::uint64_t message) {
    while (!queues[queue]->push(message)) {
    }
}

std::uint64_t pop(int queue) {
    std::uint64_t message;
    while (!queues[queue]->pop(message)) {
    }
    return message;
}

}  // namespace

#include "pair.h"

// boost::lockfree::spsc_queue without adapter and tool; see pair.h.
//
//   g++ -std=c++17 -O3 -march=native -DNDEBUG -pthread -o boost_spsc boost_spsc.cpp

#include "pair.h"

#include <boost/lockfree/spsc_queue.hpp>

#include <memory>

// As adapters in C++ have it: a virtual call behind the call of the interface.
struct Queue {
    virtual ~Queue() = default;
    virtual bool push(uint64_t message) = 0;
    virtual bool pop(uint64_t& message) = 0;
};

class Spsc final : public Queue {
public:
    explicit Spsc(size_t capacity) : queue_(capacity) {}
    __attribute__((noipa)) bool push(uint64_t message) override { return queue_.push(message); }
    __attribute__((noipa)) bool pop(uint64_t& message) override { return queue_.pop(message); }

private:
    alignas(128) boost::lockfree::spsc_queue<uint64_t> queue_;
};

static std::unique_ptr<Queue> queues[2];

static void make(size_t capacity) {
    for (auto& queue : queues) queue = std::make_unique<Spsc>(capacity);
}

static int try_push(int queue, const uint64_t* message) { return queues[queue]->push(*message); }

static int try_pop(int queue, uint64_t* message) { return queues[queue]->pop(*message); }

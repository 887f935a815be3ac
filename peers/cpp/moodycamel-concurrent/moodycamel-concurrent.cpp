// moodycamel's ConcurrentQueue, with a semaphore or without, used as its documentation recommends:
// each thread has a token for its end of a queue.
//
// Messages of different senders have no order, not even where one was sent before the other.

#include "../adapter.hpp"

#include <concurrentqueue/blockingconcurrentqueue.h>
#include <concurrentqueue/concurrentqueue.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace {

// Token of a thread for a queue that it has used lately. Queues are identified by numbers, because
// a new queue may have the address of an old one.
struct Recent {
    std::uint64_t queue;
    void* token;
};

constexpr size_t kRecent = 4;
thread_local Recent recent_senders[kRecent];
thread_local Recent recent_receivers[kRecent];

std::atomic<std::uint64_t> queues_made{0};

// All tokens of one kind for a queue. They belong to the queue, so a thread may end before it.
template <class Token>
class Tokens {
public:
    template <class Library>
    void* of_this_thread(Library& queue) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const std::thread::id self = std::this_thread::get_id();
        Owned* free = nullptr;
        for (Owned& owned : owned_) {
            if (owned.thread == self) return owned.token.get();
            if (owned.thread == std::thread::id()) free = &owned;
        }
        if (free == nullptr) {
            owned_.push_back({self, std::make_unique<Token>(queue)});
            free = &owned_.back();
        }
        free->thread = self;
        return free->token.get();
    }

    // Makes the tokens available to threads that use the queue later.
    void release() {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (Owned& owned : owned_) owned.thread = std::thread::id();
    }

private:
    struct Owned {
        std::thread::id thread;
        std::unique_ptr<Token> token;
    };

    std::mutex mutex_;
    std::vector<Owned> owned_;
};

template <size_t N, class Library, bool Blocks>
class Concurrent final : public Queue {
    using Producer = moodycamel::ProducerToken;
    using Consumer = moodycamel::ConsumerToken;

public:
    // Memory for one sender is there from the start, as far as the library knows that beforehand.
    explicit Concurrent(size_t) : queue_(reserved(N), 1, 0) {}

    void rehearsed() noexcept override {
        producers_.release();
        consumers_.release();
        for (Recent& recent : recent_senders) recent = {};
        for (Recent& recent : recent_receivers) recent = {};
    }

    void enter(int sender) noexcept override {
        guarded(
            [&] {
                if (sender >= 0) {
                    producer();
                } else {
                    consumer();
                }
                return 0;
            },
            0);
    }

    int send(const void* message) noexcept override {
        return guarded(
            [&] { return queue_.enqueue(producer(), at<N>(message)) ? TT_TAKEN : TT_CLOSED; },
            TT_CLOSED);
    }

    size_t send_many(const void* messages, size_t count) noexcept override {
        return guarded(
            [&] { return queue_.enqueue_bulk(producer(), &at<N>(messages), count) ? count : 0; },
            size_t{0});
    }

    long try_recv(void* message) noexcept override {
        return guarded(
            [&] { return queue_.try_dequeue(consumer(), at<N>(message)) ? long{N} : TT_NOTHING; },
            long{TT_CLOSED});
    }

    size_t recv_many(void* messages, size_t most) noexcept override {
        return guarded([&] { return queue_.try_dequeue_bulk(consumer(), &at<N>(messages), most); },
                       size_t{0});
    }

    long recv(void* message) noexcept override {
        if constexpr (Blocks) {
            return guarded(
                [&] {
                    queue_.wait_dequeue(consumer(), at<N>(message));
                    return long{N};
                },
                long{TT_CLOSED});
        } else {
            return Queue::recv(message);
        }
    }

private:
    Producer& producer() {
        Recent& recent = recent_senders[number_ % kRecent];
        if (__builtin_expect(recent.queue != number_, 0)) {
            recent = {number_, producers_.of_this_thread(queue_)};
        }
        return *static_cast<Producer*>(recent.token);
    }

    Consumer& consumer() {
        Recent& recent = recent_receivers[number_ % kRecent];
        if (__builtin_expect(recent.queue != number_, 0)) {
            recent = {number_, consumers_.of_this_thread(queue_)};
        }
        return *static_cast<Consumer*>(recent.token);
    }

    const std::uint64_t number_ = queues_made.fetch_add(1, std::memory_order_relaxed) + 1;
    alignas(kApart) Library queue_;
    // Destroyed before the queue that they belong to.
    alignas(kApart) Tokens<Producer> producers_;
    Tokens<Consumer> consumers_;
};

template <size_t N>
using Polled = Concurrent<N, moodycamel::ConcurrentQueue<Message<N>>, false>;
template <size_t N>
using Blocking = Concurrent<N, moodycamel::BlockingConcurrentQueue<Message<N>>, true>;

const std::vector<Peer>& peers() {
    static const std::vector<Peer> table = {
        {"moodycamel-cq", TT_LIBRARY_VERSION,
         "moodycamel::ConcurrentQueue, with a token for each thread", Ends::many, Ends::many, 0,
         false, kPoll, true, sized<Polled>},
        {"moodycamel-cq-blocking", TT_LIBRARY_VERSION,
         "moodycamel::BlockingConcurrentQueue, with a token for each thread", Ends::many,
         Ends::many, 0, false, kBlock, true, sized<Blocking>},
    };
    return table;
}

}  // namespace

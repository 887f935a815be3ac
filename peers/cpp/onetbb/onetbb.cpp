// The queues of oneTBB: `concurrent_queue`, unbounded and polled, and `concurrent_bounded_queue`,
// both of whose ends can wait. Their memory comes in pages as messages do, whatever the capacity.

#include "../adapter.hpp"

#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/version.h>

namespace {

template <size_t N>
class Unbounded final : public Queue {
public:
    explicit Unbounded(size_t) {}

    int send(const void* message) noexcept override {
        return guarded(
            [&] {
                queue_.push(at<N>(message));
                return TT_TAKEN;
            },
            TT_CLOSED);
    }

    long try_recv(void* message) noexcept override {
        return guarded([&] { return queue_.try_pop(at<N>(message)) ? long{N} : TT_NOTHING; },
                       long{TT_CLOSED});
    }

private:
    alignas(kApart) tbb::concurrent_queue<Message<N>> queue_;
};

template <size_t N>
class Bounded final : public Queue {
public:
    explicit Bounded(size_t capacity) {
        queue_.set_capacity(static_cast<std::ptrdiff_t>(capacity));
    }

    int send(const void* message) noexcept override {
        return guarded([&] { return queue_.try_push(at<N>(message)) ? TT_TAKEN : TT_FULL; },
                       TT_CLOSED);
    }

    int send_wait(const void* message) noexcept override {
        return guarded(
            [&] {
                queue_.push(at<N>(message));
                return TT_TAKEN;
            },
            TT_CLOSED);
    }

    long try_recv(void* message) noexcept override {
        return guarded([&] { return queue_.try_pop(at<N>(message)) ? long{N} : TT_NOTHING; },
                       long{TT_CLOSED});
    }

    long recv(void* message) noexcept override {
        return guarded(
            [&] {
                queue_.pop(at<N>(message));
                return long{N};
            },
            long{TT_CLOSED});
    }

private:
    alignas(kApart) tbb::concurrent_bounded_queue<Message<N>> queue_;
};

// A page of 32 messages has a header of 16 bytes and whole cache lines.
constexpr size_t kSlotBytes = 10;

const std::vector<Peer>& peers() {
    static const std::string version = TBB_VERSION_STRING;
    static const std::vector<Peer> table = {
        {"tbb-queue", version, "oneapi::tbb::concurrent_queue", Ends::many, Ends::many, 0, false,
         kPoll, false, sized<Unbounded>},
        {"tbb-queue-bounded", version, "oneapi::tbb::concurrent_bounded_queue", Ends::many,
         Ends::many, kSlotBytes, false, kPoll | kBlock, false, sized<Bounded>},
    };
    return table;
}

}  // namespace

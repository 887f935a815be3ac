// The queues of Boost.Lockfree: `queue`, with nodes from a free list that grows or is fixed, and
// `spsc_queue`, a ring.

#include "../adapter.hpp"

#include <boost/lockfree/queue.hpp>
#include <boost/lockfree/spsc_queue.hpp>
#include <boost/version.hpp>

namespace {

namespace lockfree = boost::lockfree;

template <size_t N, bool Fixed>
class BoostQueue final : public Queue {
public:
    explicit BoostQueue(size_t capacity) : queue_(Fixed ? capacity : reserved(N)) {}

    int send(const void* message) noexcept override {
        if constexpr (Fixed) {
            return queue_.bounded_push(at<N>(message)) ? TT_TAKEN : TT_FULL;
        } else {
            return guarded([&] { return queue_.push(at<N>(message)) ? TT_TAKEN : TT_CLOSED; },
                           TT_CLOSED);
        }
    }

    long try_recv(void* message) noexcept override {
        return queue_.pop(at<N>(message)) ? long{N} : TT_NOTHING;
    }

private:
    alignas(kApart) lockfree::queue<Message<N>, lockfree::fixed_sized<Fixed>> queue_;
};

template <size_t N>
class BoostSpsc final : public Queue {
public:
    explicit BoostSpsc(size_t capacity) : queue_(capacity) {}

    int send(const void* message) noexcept override {
        return queue_.push(at<N>(message)) ? TT_TAKEN : TT_FULL;
    }

    long try_recv(void* message) noexcept override {
        return queue_.pop(at<N>(message)) ? long{N} : TT_NOTHING;
    }

    size_t send_many(const void* messages, size_t count) noexcept override {
        return queue_.push(&at<N>(messages), count);
    }

    size_t recv_many(void* messages, size_t most) noexcept override {
        return queue_.pop(&at<N>(messages), most);
    }

private:
    alignas(kApart) lockfree::spsc_queue<Message<N>> queue_;
};

template <size_t N>
using Growing = BoostQueue<N, false>;
template <size_t N>
using Fixed = BoostQueue<N, true>;

const std::vector<Peer>& peers() {
    static const std::string version = std::to_string(BOOST_VERSION / 100000) + "." +
                                       std::to_string(BOOST_VERSION / 100 % 1000) + "." +
                                       std::to_string(BOOST_VERSION % 100);
    static const std::vector<Peer> table = {
        {"boost-queue", version, "boost::lockfree::queue, whose free list grows", Ends::many,
         Ends::many, 0, false, kPoll, false, sized<Growing>},
        {"boost-queue-fixed", version,
         "boost::lockfree::queue of fixed size, with up to 65,534 messages", Ends::many, Ends::many,
         BOOST_LOCKFREE_CACHELINE_BYTES, false, kPoll, false, sized<Fixed>},
        {"boost-spsc", version, "boost::lockfree::spsc_queue, whose size is chosen at run time",
         Ends::one, Ends::one, 8, false, kPoll, true, sized<BoostSpsc>},
    };
    return table;
}

}  // namespace

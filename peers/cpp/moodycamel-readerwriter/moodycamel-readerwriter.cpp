// The queues of moodycamel's readerwriterqueue, for one sender and one receiver: an unbounded one,
// with a semaphore or without, and a ring with two semaphores.

#include "../adapter.hpp"

#include <readerwriterqueue/readerwritercircularbuffer.h>
#include <readerwriterqueue/readerwriterqueue.h>

namespace {

template <size_t N, class Library, bool Blocks>
class ReaderWriter final : public Queue {
public:
    explicit ReaderWriter(size_t) : queue_(reserved(N)) {}

    int send(const void* message) noexcept override {
        return queue_.enqueue(at<N>(message)) ? TT_TAKEN : TT_CLOSED;
    }

    long try_recv(void* message) noexcept override {
        return queue_.try_dequeue(at<N>(message)) ? long{N} : TT_NOTHING;
    }

    long recv(void* message) noexcept override {
        if constexpr (Blocks) {
            queue_.wait_dequeue(at<N>(message));
            return N;
        } else {
            return Queue::recv(message);
        }
    }

private:
    alignas(kApart) Library queue_;
};

template <size_t N>
using Polled = ReaderWriter<N, moodycamel::ReaderWriterQueue<Message<N>>, false>;
template <size_t N>
using Blocking = ReaderWriter<N, moodycamel::BlockingReaderWriterQueue<Message<N>>, true>;

template <size_t N>
class CircularBuffer final : public Queue {
public:
    explicit CircularBuffer(size_t capacity) : queue_(capacity) {}

    int send(const void* message) noexcept override {
        return queue_.try_enqueue(at<N>(message)) ? TT_TAKEN : TT_FULL;
    }

    int send_wait(const void* message) noexcept override {
        queue_.wait_enqueue(at<N>(message));
        return TT_TAKEN;
    }

    long try_recv(void* message) noexcept override {
        return queue_.try_dequeue(at<N>(message)) ? long{N} : TT_NOTHING;
    }

    long recv(void* message) noexcept override {
        queue_.wait_dequeue(at<N>(message));
        return N;
    }

private:
    alignas(kApart) moodycamel::BlockingReaderWriterCircularBuffer<Message<N>> queue_;
};

const std::vector<Peer>& peers() {
    static const std::vector<Peer> table = {
        {"moodycamel-rwq", TT_LIBRARY_VERSION, "moodycamel::ReaderWriterQueue", Ends::one,
         Ends::one, 0, false, kPoll, false, sized<Polled>},
        {"moodycamel-rwq-blocking", TT_LIBRARY_VERSION, "moodycamel::BlockingReaderWriterQueue",
         Ends::one, Ends::one, 0, false, kBlock, false, sized<Blocking>},
        {"moodycamel-rwcb", TT_LIBRARY_VERSION, "moodycamel::BlockingReaderWriterCircularBuffer",
         Ends::one, Ends::one, 8, false, kPoll | kBlock, false, sized<CircularBuffer>},
    };
    return table;
}

}  // namespace

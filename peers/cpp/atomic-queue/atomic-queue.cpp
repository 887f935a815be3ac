// The queues of atomic_queue. A message of 8 bytes is an atomic element, of which one value means
// "empty"; larger ones have a state each.
//
// They are for many threads, but with several senders or receivers one message of a sender may
// overtake another: a sender that loses its CPU between taking a slot and filling it finds the slot
// used by one that is a whole ring ahead, whose message then arrives too early. Between two threads
// the order is kept, so that is what they are described for.
//
// The library shuffles the elements of queues whose size is chosen at run time, and makes such
// queues no smaller than 64 atomic elements, or 4,096 others. Smaller ones are of its types whose
// size is chosen at compile time.

#include "../adapter.hpp"

#include <atomic_queue/atomic_queue.h>

#include <cstdint>
#include <utility>

namespace {

// Value of an empty element: one that programs do not send, unlike 0. If a program sends it
// nevertheless, the answer is TT_CLOSED.
constexpr std::uint64_t kNil = 0x9e3779b97f4a7c15;

// With `Optimist`, the waiting calls are those of the library: they take a slot at once and spin
// until it is free or filled.
template <size_t N, class Library, bool Optimist>
class AtomicQueue final : public Queue {
    static constexpr bool kAtomic = N == 8;

public:
    template <class... Arguments>
    explicit AtomicQueue(Arguments... arguments) : queue_(arguments...) {}

    int send(const void* message) noexcept override {
        if constexpr (kAtomic) {
            const std::uint64_t word = load(message);
            if (word == kNil) return TT_CLOSED;
            return queue_.try_push(word) ? TT_TAKEN : TT_FULL;
        } else {
            return queue_.try_push(at<N>(message)) ? TT_TAKEN : TT_FULL;
        }
    }

    long try_recv(void* message) noexcept override {
        if constexpr (kAtomic) {
            std::uint64_t word;
            if (!queue_.try_pop(word)) return TT_NOTHING;
            std::memcpy(message, &word, sizeof word);
            return N;
        } else {
            return queue_.try_pop(at<N>(message)) ? long{N} : TT_NOTHING;
        }
    }

    int send_wait(const void* message) noexcept override {
        if constexpr (!Optimist) {
            return Queue::send_wait(message);
        } else if constexpr (kAtomic) {
            const std::uint64_t word = load(message);
            if (word == kNil) return TT_CLOSED;
            queue_.push(word);
        } else {
            queue_.push(at<N>(message));
        }
        return TT_TAKEN;
    }

    long recv(void* message) noexcept override {
        if constexpr (!Optimist) {
            return Queue::recv(message);
        } else if constexpr (kAtomic) {
            const std::uint64_t word = queue_.pop();
            std::memcpy(message, &word, sizeof word);
        } else {
            // Without a copy in between.
            new (message) Message<N>(queue_.pop());
        }
        return N;
    }

private:
    static std::uint64_t load(const void* message) noexcept {
        std::uint64_t word;
        std::memcpy(&word, message, sizeof word);
        return word;
    }

    alignas(kApart) Library queue_;
};

enum class Form { many, spsc, optimist };

template <size_t N, Form F>
struct Types {
    static constexpr bool kSpsc = F == Form::spsc;
    static constexpr bool kOptimist = F == Form::optimist;

    template <unsigned Size>
    using SmallLibrary = std::conditional_t<
        N == 8, atomic_queue::AtomicQueue<std::uint64_t, Size, kNil, true, true, false, kSpsc>,
        atomic_queue::AtomicQueue2<Message<N>, Size, true, true, false, kSpsc>>;
    using LargeLibrary = std::conditional_t<
        N == 8,
        atomic_queue::AtomicQueueB<std::uint64_t, std::allocator<std::uint64_t>, kNil, true, false,
                                   kSpsc>,
        atomic_queue::AtomicQueueB2<Message<N>, std::allocator<Message<N>>, true, false, kSpsc>>;

    template <unsigned Size>
    using Small = AtomicQueue<N, SmallLibrary<Size>, kOptimist>;
    using Large = AtomicQueue<N, LargeLibrary, kOptimist>;

    // Smallest size that can be chosen at run time.
    static constexpr unsigned kLarge = N == 8 ? 64 : 4096;
    // Largest size that is compiled: types of more bytes take the compiler too long.
    static constexpr size_t kMostBytes = 16 << 20;

    template <unsigned Bit>
    static Queue* small(size_t capacity) {
        constexpr unsigned size = 1u << Bit;
        if constexpr (size < kLarge && size * N <= kMostBytes) {
            return capacity == size ? new Small<size>() : small<Bit + 1>(capacity);
        } else {
            return nullptr;
        }
    }

    static Queue* create(size_t capacity) {
        if (capacity > 1u << 30) return nullptr;
        if (capacity >= kLarge) return new Large(static_cast<unsigned>(capacity));
        return small<0>(capacity);
    }
};

template <Form F>
Queue* create_form(size_t capacity, size_t message_bytes) {
    switch (message_bytes) {
        case 8: return Types<8, F>::create(capacity);
        case 64: return Types<64, F>::create(capacity);
        case 512: return Types<512, F>::create(capacity);
        case 4096: return Types<4096, F>::create(capacity);
        case 65536: return Types<65536, F>::create(capacity);
        default: return nullptr;
    }
}

const std::vector<Peer>& peers() {
    static const std::vector<Peer> table = {
        {"atomic-queue", TT_LIBRARY_VERSION,
         "atomic_queue::AtomicQueue(B), larger messages AtomicQueue(B)2, for many threads",
         Ends::one, Ends::one, 8, true, kPoll, false, create_form<Form::many>},
        {"atomic-queue-spsc", TT_LIBRARY_VERSION,
         "atomic_queue::AtomicQueue(B) with SPSC, larger messages AtomicQueue(B)2", Ends::one,
         Ends::one, 8, true, kPoll, false, create_form<Form::spsc>},
        {"atomic-queue-optimist", TT_LIBRARY_VERSION,
         "as OptimistAtomicQueue: push and pop take a slot at once and spin until it is ready",
         Ends::one, Ends::one, 8, true, kBlock, false, create_form<Form::optimist>},
    };
    return table;
}

}  // namespace

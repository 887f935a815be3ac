// A mutex and a std::queue, as in the 2016 article on queues between threads. Its receivers differ
// in what they do while the queue is empty.
//
// The fourth one is a reconstruction: the article promises a "reasonable and balanced" queue, but
// its code and figure are lost from the copies that we have.

#include "../adapter.hpp"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <queue>
#include <thread>

namespace {

enum class Empty { caller_polls, usleep, yield, spin_then_sleep };

// Number of times that the receiver finds the queue empty before it sleeps.
constexpr int kChecks = 1000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    asm volatile("yield" ::: "memory");
#endif
}

template <size_t N, Empty E>
class MutexQueue final : public Queue {
    static constexpr bool kSleeps = E == Empty::spin_then_sleep;

public:
    explicit MutexQueue(size_t) {}

    int send(const void* message) noexcept override {
        return guarded(
            [&] {
                put(message, 1);
                return TT_TAKEN;
            },
            TT_CLOSED);
    }

    size_t send_many(const void* messages, size_t count) noexcept override {
        return guarded(
            [&] {
                put(messages, count);
                return count;
            },
            size_t{0});
    }

    long try_recv(void* message) noexcept override {
        const std::lock_guard<std::mutex> lock(mutex_);
        return take(message, 1) == 1 ? long{N} : TT_NOTHING;
    }

    size_t recv_many(void* messages, size_t most) noexcept override {
        const std::lock_guard<std::mutex> lock(mutex_);
        return take(messages, most);
    }

    long recv(void* message) noexcept override {
        if constexpr (kSleeps) {
            for (int check = 0; check < kChecks; ++check) {
                if (count_.load(std::memory_order_relaxed) > 0 && try_recv(message) > 0) return N;
                pause();
            }
            std::unique_lock<std::mutex> lock(mutex_);
            ++sleepers_;
            filled_.wait(lock, [this] { return !messages_.empty(); });
            --sleepers_;
            take(message, 1);
        } else {
            while (try_recv(message) == TT_NOTHING) {
                if constexpr (E == Empty::usleep) usleep(1);
                if constexpr (E == Empty::yield) std::this_thread::yield();
            }
        }
        return N;
    }

private:
    void put(const void* messages, size_t count) {
        size_t sleepers = 0;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            for (size_t index = 0; index < count; ++index) {
                messages_.push((&at<N>(messages))[index]);
            }
            if constexpr (kSleeps) {
                count_.store(messages_.size(), std::memory_order_relaxed);
                sleepers = sleepers_;
            }
        }
        if (sleepers > 0) {
            if (count == 1) {
                filled_.notify_one();
            } else {
                filled_.notify_all();
            }
        }
    }

    // Under the lock.
    size_t take(void* messages, size_t most) noexcept {
        size_t taken = 0;
        for (; taken < most && !messages_.empty(); ++taken) {
            (&at<N>(messages))[taken] = messages_.front();
            messages_.pop();
        }
        if constexpr (kSleeps) count_.store(messages_.size(), std::memory_order_relaxed);
        return taken;
    }

    alignas(kApart) std::mutex mutex_;
    std::queue<Message<N>> messages_;
    size_t sleepers_ = 0;
    std::condition_variable filled_;
    // Number of messages, to be read without the lock.
    alignas(kApart) std::atomic<size_t> count_{0};
};

template <size_t N>
using Polled = MutexQueue<N, Empty::caller_polls>;
template <size_t N>
using Usleep = MutexQueue<N, Empty::usleep>;
template <size_t N>
using Yield = MutexQueue<N, Empty::yield>;
template <size_t N>
using SpinThenSleep = MutexQueue<N, Empty::spin_then_sleep>;

const std::vector<Peer>& peers() {
    const auto peer = [](const char* name, const char* sentence, unsigned waits, auto create) {
        const std::string version = std::to_string(_GLIBCXX_RELEASE);
        return Peer{name, version, sentence, Ends::many, Ends::many, 0, false, waits, true, create};
    };
    static const std::vector<Peer> table = {
        peer("mutex-queue", "a mutex and a std::queue, polled", kPoll, sized<Polled>),
        peer("mutex-queue-usleep", "a mutex and a std::queue, polled with usleep(1) in between",
             kBlock, sized<Usleep>),
        peer("mutex-queue-yield", "a mutex and a std::queue, polled with a yield in between",
             kBlock, sized<Yield>),
        peer("mutex-queue-condvar",
             "a mutex and a std::queue: 1,000 checks, then a condition variable; a reconstruction",
             kBlock, sized<SpinThenSleep>),
    };
    return table;
}

}  // namespace

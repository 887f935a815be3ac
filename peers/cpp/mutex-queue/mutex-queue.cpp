// A mutex and a std::queue, as in the 2016 article on queues between threads. Its receivers differ
// in what they do while the queue is empty.
//
// The one that sleeps on a condition variable is a reconstruction: the article promises a
// "reasonable and balanced" queue, but its code and figure are lost from the copies that we have.
// The last one is what event loops do, and stands in no article.

#include "../adapter.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

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

// The receiver takes all messages at once. A sender writes to the eventfd only if the receiver has
// found nothing and is about to read it.
template <size_t N>
class EventfdQueue final : public Queue {
public:
    explicit EventfdQueue(size_t) : event_(eventfd(0, EFD_CLOEXEC)) {
        if (event_ < 0) throw std::runtime_error("no eventfd");
    }

    ~EventfdQueue() override { close(event_); }

    int send(const void* message) noexcept override { return put(message, 1); }

    size_t send_many(const void* messages, size_t count) noexcept override {
        return put(messages, count) == TT_TAKEN ? count : 0;
    }

    long try_recv(void* message) noexcept override {
        if (next_ == fetched_.size() && !fetch(false)) return TT_NOTHING;
        return take(message);
    }

    long recv(void* message) noexcept override {
        while (next_ == fetched_.size() && !fetch(true)) {
            uint64_t count;
            while (read(event_, &count, sizeof count) < 0 && errno == EINTR) {
            }
        }
        return take(message);
    }

    size_t recv_many(void* messages, size_t most) noexcept override {
        size_t count = 0;
        while (count < most && try_recv(&at<N>(messages) + count) > 0) ++count;
        return count;
    }

private:
    int put(const void* messages, size_t count) noexcept {
        bool sleeps = false;
        const int result = guarded(
            [&] {
                const std::lock_guard<std::mutex> lock(mutex_);
                const Message<N>* const first = &at<N>(messages);
                sent_.insert(sent_.end(), first, first + count);
                sleeps = std::exchange(sleeps_, false);
                return TT_TAKEN;
            },
            TT_CLOSED);
        const uint64_t one = 1;
        if (sleeps) {
            while (write(event_, &one, sizeof one) < 0 && errno == EINTR) {
            }
        }
        return result;
    }

    // Returns false if there is nothing; the receiver then sleeps, if it says so.
    bool fetch(bool sleeps) noexcept {
        fetched_.clear();
        next_ = 0;
        const std::lock_guard<std::mutex> lock(mutex_);
        fetched_.swap(sent_);
        sleeps_ = sleeps && fetched_.empty();
        return !fetched_.empty();
    }

    long take(void* message) noexcept {
        at<N>(message) = fetched_[next_++];
        return N;
    }

    const int event_;
    alignas(kApart) std::mutex mutex_;
    std::vector<Message<N>> sent_;
    bool sleeps_ = false;
    // The receiver's.
    alignas(kApart) std::vector<Message<N>> fetched_;
    size_t next_ = 0;
};

const std::vector<Peer>& peers() {
    static const std::string version = std::to_string(_GLIBCXX_RELEASE);
    const auto peer = [](const char* name, const char* sentence, unsigned waits, auto create) {
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
        Peer{"mutex-queue-eventfd", version,
             "a mutex, a std::vector that is taken as a whole, and an eventfd on which the receiver "
             "sleeps",
             Ends::many, Ends::one, 0, false, kPoll | kBlock, true, sized<EventfdQueue>},
    };
    return table;
}

}  // namespace

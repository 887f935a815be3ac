// boost::asio::post to an io_context with a timer and a socket, as in the 2016 article on queues
// between threads. The receiver runs the io_context: a message arrives when its functor runs.

#include "../adapter.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/datagram_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/version.hpp>

#include <array>
#include <chrono>
#include <deque>
#include <mutex>

namespace {

namespace asio = boost::asio;

// An io_context run by one thread, which also waits for a timer and a socket. Neither fires.
class Loop {
public:
    Loop() {
        asio::local::connect_pair(here_, there_);
        timer_.expires_after(std::chrono::hours(24));
        timer_.async_wait([](const boost::system::error_code&) {});
        here_.async_receive(asio::buffer(datagram_),
                            [](const boost::system::error_code&, size_t) {});
    }

    asio::io_context& context() { return context_; }

private:
    asio::io_context context_{1};
    asio::steady_timer timer_{context_};
    asio::local::datagram_protocol::socket here_{context_};
    asio::local::datagram_protocol::socket there_{context_};
    std::array<char, 64> datagram_{};
};

// The message is in the functor.
template <size_t N>
class Carried final : public Queue {
public:
    explicit Carried(size_t) {}

    int send(const void* message) noexcept override {
        return guarded(
            [&] {
                asio::post(loop_.context(), [this, carried = at<N>(message)] {
                    *place_ = carried;
                    arrived_ = true;
                });
                return TT_TAKEN;
            },
            TT_CLOSED);
    }

    long try_recv(void* message) noexcept override {
        return receive(message, [this] { return loop_.context().poll_one(); });
    }

    long recv(void* message) noexcept override {
        return receive(message, [this] { return loop_.context().run_one(); });
    }

private:
    template <class Run>
    long receive(void* message, Run run_one) noexcept {
        return guarded(
            [&]() -> long {
                place_ = &at<N>(message);
                arrived_ = false;
                while (!arrived_) {
                    if (run_one() == 0) return TT_NOTHING;
                }
                return N;
            },
            long{TT_CLOSED});
    }

    alignas(kApart) Loop loop_;
    // Where the receiver wants its message, and if the functor has put it there.
    alignas(kApart) Message<N>* place_ = nullptr;
    bool arrived_ = false;
};

// The message is in a queue with a mutex, and the functor takes all that are there. It is posted
// when the queue ceases to be empty.
template <size_t N>
class Fetched final : public Queue {
public:
    explicit Fetched(size_t) {}

    int send(const void* message) noexcept override { return put(message, 1); }

    size_t send_many(const void* messages, size_t count) noexcept override {
        return put(messages, count) == TT_TAKEN ? count : 0;
    }

    long try_recv(void* message) noexcept override {
        return receive(message, [this] { return loop_.context().poll_one(); });
    }

    long recv(void* message) noexcept override {
        return receive(message, [this] { return loop_.context().run_one(); });
    }

    size_t recv_many(void* messages, size_t most) noexcept override {
        Message<N>* const places = &at<N>(messages);
        size_t count = 0;
        while (count < most && try_recv(places + count) > 0) ++count;
        return count;
    }

private:
    int put(const void* messages, size_t count) noexcept {
        return guarded(
            [&] {
                bool was_empty;
                {
                    const std::lock_guard<std::mutex> lock(mutex_);
                    was_empty = sent_.empty();
                    const Message<N>* const first = &at<N>(messages);
                    sent_.insert(sent_.end(), first, first + count);
                }
                if (was_empty) asio::post(loop_.context(), [this] { fetch(); });
                return TT_TAKEN;
            },
            TT_CLOSED);
    }

    void fetch() {
        const std::lock_guard<std::mutex> lock(mutex_);
        fetched_.swap(sent_);
    }

    template <class Run>
    long receive(void* message, Run run_one) noexcept {
        return guarded(
            [&]() -> long {
                while (fetched_.empty()) {
                    if (run_one() == 0) return TT_NOTHING;
                }
                at<N>(message) = fetched_.front();
                fetched_.pop_front();
                return N;
            },
            long{TT_CLOSED});
    }

    alignas(kApart) Loop loop_;
    alignas(kApart) std::mutex mutex_;
    std::deque<Message<N>> sent_;
    // The receiver's. Empty whenever `fetch` runs.
    alignas(kApart) std::deque<Message<N>> fetched_;
};

const std::vector<Peer>& peers() {
    static const std::string version = std::to_string(BOOST_VERSION / 100000) + "." +
                                       std::to_string(BOOST_VERSION / 100 % 1000) + "." +
                                       std::to_string(BOOST_VERSION % 100);
    static const std::vector<Peer> table = {
        {"asio-post", version,
         "boost::asio::post of a functor with the message, to a thread with a timer and a socket",
         Ends::many, Ends::one, 0, false, kPoll | kBlock, false, sized<Carried>},
        {"asio-post-fetch", version,
         "boost::asio::post of a functor that takes all messages from a queue with a mutex, to a "
         "thread with a timer and a socket",
         Ends::many, Ends::one, 0, false, kPoll | kBlock, true, sized<Fetched>},
    };
    return table;
}

}  // namespace

// Shared code of the C++ adapters: a table of queues, and the functions of adapter.h, which use
// that table. An adapter includes it once, derives its queues from Queue, and defines `peers`.
//
// Each call costs an indirect jump in addition to the call itself.

#ifndef THREADTOLL_ADAPTER_HPP
#define THREADTOLL_ADAPTER_HPP

#include "../adapter.h"

#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#if !defined(TT_COMPILER) || !defined(TT_FLAGS)
#error "the build script defines TT_COMPILER and TT_FLAGS"
#endif

// Everything here belongs to one library, even if a process loads several of them.
namespace {

using std::size_t;

// A message of N bytes. Its elements are characters, so that any memory may be accessed as one.
template <size_t N>
struct alignas(8) Message {
    unsigned char bytes[N];
};

template <size_t N>
const Message<N>& at(const void* message) noexcept {
    return *static_cast<const Message<N>*>(message);
}

template <size_t N>
Message<N>& at(void* message) noexcept {
    return *static_cast<Message<N>*>(message);
}

// Two lines, because processors prefetch pairs of them.
constexpr size_t kApart = 128;

// A queue of messages of one size. A call that a queue does not support returns TT_CLOSED or
// 0.
class Queue {
public:
    virtual ~Queue() = default;
    // The thread that made the queue has used both ends, and will not again.
    virtual void rehearsed() noexcept {}
    virtual void enter(int /* sender */) noexcept {}
    virtual int send(const void* message) noexcept = 0;
    virtual long try_recv(void* message) noexcept = 0;
    virtual int send_wait(const void* /* message */) noexcept { return TT_CLOSED; }
    virtual long recv(void* /* message */) noexcept { return TT_CLOSED; }
    virtual size_t send_many(const void* /* messages */, size_t /* count */) noexcept { return 0; }
    virtual size_t recv_many(void* /* messages */, size_t /* most */) noexcept { return 0; }
};

// Returns what `act` returns, or `otherwise` if it throws.
template <class Act, class Otherwise>
inline auto guarded(Act act, Otherwise otherwise) noexcept -> decltype(act()) {
    try {
        return act();
    } catch (...) {
        return otherwise;
    }
}

enum Waits : unsigned { kPoll = 1, kBlock = 2 };
enum class Ends { one, many };

struct Peer {
    const char* name;
    std::string version;
    const char* sentence;
    Ends senders;
    Ends receivers;
    size_t slot_bytes;  // 0: unbounded
    bool power_of_two;
    unsigned waits;
    bool batches;
    // Makes a queue for messages of one of `kSizes`, or returns null.
    Queue* (*create)(size_t capacity, size_t message_bytes);
};

constexpr size_t kSizes[] = {8, 64, 512, 4096, 65536};

// Makes an `Of<N>`.
template <template <size_t> class Of>
Queue* sized(size_t capacity, size_t message_bytes) {
    switch (message_bytes) {
        case 8: return new Of<8>(capacity);
        case 64: return new Of<64>(capacity);
        case 512: return new Of<512>(capacity);
        case 4096: return new Of<4096>(capacity);
        case 65536: return new Of<65536>(capacity);
        default: return nullptr;
    }
}

// Number of messages for which an unbounded queue allocates memory beforehand, if it can: as many as
// a bounded queue of the usual size in bytes holds.
constexpr size_t reserved(size_t message_bytes) noexcept {
    constexpr size_t bytes = 256 << 10;
    constexpr size_t most = 4096;
    return bytes / message_bytes < most ? bytes / message_bytes : most;
}

// Sends messages until the queue is full, or contains `most`, and receives them, which touches the
// queue's memory. Returns the number of messages.
size_t rehearse(Queue& queue, size_t most, size_t message_bytes) {
    const std::vector<unsigned long long> blank(message_bytes / sizeof(unsigned long long));
    std::vector<unsigned long long> received(blank.size());
    size_t count = 0;
    while (count < most && queue.send(blank.data()) == TT_TAKEN) ++count;
    for (size_t left = count; left > 0; --left) {
        while (queue.try_recv(received.data()) == TT_NOTHING) {
        }
    }
    queue.rehearsed();
    return count;
}

// The queues of this library.
const std::vector<Peer>& peers();

std::string quoted(const std::string& text) {
    std::string json = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') json += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) json += c;
    }
    return json + "\"";
}

std::string description() {
    const auto member = [](const char* name, const std::string& value) {
        return quoted(name) + ":" + value;
    };
    const auto flag = [](bool value) { return std::string(value ? "true" : "false"); };
    const auto ends = [](Ends ends) { return quoted(ends == Ends::one ? "one" : "many"); };
    std::string sizes;
    for (const size_t size : kSizes) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    std::string queues;
    for (const Peer& peer : peers()) {
        if (!queues.empty()) queues += ",";
        queues += "{" + member("name", quoted(peer.name));
        queues += "," + member("version", quoted(peer.version));
        queues += "," + member("sentence", quoted(peer.sentence));
        queues += "," + member("senders", ends(peer.senders));
        queues += "," + member("receivers", ends(peer.receivers));
        queues += "," + member("capacity", quoted(peer.slot_bytes ? "bounded" : "unbounded"));
        if (peer.slot_bytes) {
            queues += "," + member("slot_bytes", std::to_string(peer.slot_bytes));
            queues += "," + member("power_of_two", flag(peer.power_of_two));
        }
        std::string waits;
        if (peer.waits & kPoll) waits = quoted("poll");
        if (peer.waits & kBlock) waits += (waits.empty() ? "" : ",") + quoted("block");
        queues += "," + member("waits", "[" + waits + "]");
        queues += "," + member("batches", flag(peer.batches));
        queues += "," + member("claims", flag(false));
        queues += "," + member("message_bytes", "[" + sizes + "]") + "}";
    }
    return "{" + member("adapter", std::to_string(TT_ADAPTER)) + "," +
           member("language", quoted("c++")) + "," + member("compiler", quoted(TT_COMPILER)) +
           "," + member("flags", quoted(TT_FLAGS)) + "," + member("queues", "[" + queues + "]") +
           "}";
}

// A queue of more bytes than this is an error of the caller. Some libraries multiply sizes without
// a check.
constexpr size_t kMostBytes = size_t{1} << 36;

Queue* create(const char* name, size_t capacity, size_t message_bytes) {
    for (const Peer& peer : peers()) {
        if (std::strcmp(peer.name, name) != 0) continue;
        bool known = false;
        for (const size_t size : kSizes) known |= size == message_bytes;
        if (!known) return nullptr;
        if (!peer.slot_bytes) {
            std::unique_ptr<Queue> queue(peer.create(0, message_bytes));
            if (queue) rehearse(*queue, reserved(message_bytes), message_bytes);
            return queue.release();
        }
        if (capacity == 0 || capacity > kMostBytes / (peer.slot_bytes + message_bytes)) {
            return nullptr;
        }
        if (peer.power_of_two && (capacity & (capacity - 1)) != 0) return nullptr;
        std::unique_ptr<Queue> queue(peer.create(capacity, message_bytes));
        const bool exact = queue && rehearse(*queue, capacity + 1, message_bytes) == capacity;
        return exact ? queue.release() : nullptr;
    }
    return nullptr;
}

}  // namespace

extern "C" {

const char* tt_describe() noexcept {
    return guarded(
        [] {
            static const std::string json = description();
            return json.c_str();
        },
        "");
}

void* tt_create_sized(const char* name, size_t capacity, size_t message_bytes) noexcept {
    return guarded([=]() -> void* { return create(name, capacity, message_bytes); }, nullptr);
}

void* tt_create(const char* name, size_t capacity) noexcept {
    return tt_create_sized(name, capacity, 8);
}

void tt_destroy(void* queue) noexcept {
    delete static_cast<Queue*>(queue);
}

void tt_enter(void* queue, int sender) noexcept {
    static_cast<Queue*>(queue)->enter(sender);
}

int tt_send(void* queue, const void* message, size_t) noexcept {
    return static_cast<Queue*>(queue)->send(message);
}

long tt_try_recv(void* queue, void* message, size_t) noexcept {
    return static_cast<Queue*>(queue)->try_recv(message);
}

int tt_send_wait(void* queue, const void* message, size_t) noexcept {
    return static_cast<Queue*>(queue)->send_wait(message);
}

long tt_recv(void* queue, void* message, size_t) noexcept {
    return static_cast<Queue*>(queue)->recv(message);
}

size_t tt_send_many(void* queue, const void* messages, size_t, size_t count) noexcept {
    return static_cast<Queue*>(queue)->send_many(messages, count);
}

size_t tt_recv_many(void* queue, void* messages, size_t, size_t most) noexcept {
    return static_cast<Queue*>(queue)->recv_many(messages, most);
}

}  // extern "C"

#endif

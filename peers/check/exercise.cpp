// Checks an adapter: what it describes, and that each of its queues delivers every message once,
// in order and unharmed, says when it is full or empty, waits and wakes up, and ends in peace.
//
//   exercise ADAPTER.so [QUEUE…]
//
// Prints a line for each queue. Ends with 1 at the first thing that is wrong, and with 2 if the
// adapter cannot be loaded. Built with a sanitizer, and with an adapter that is, it finds wrong
// accesses and leaks, too: see exercise.sh.

#include "../adapter.h"

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using std::size_t;
using std::string;
using std::to_string;
using std::uint64_t;

// A check that hangs ends the program after this time.
constexpr unsigned kHangsSeconds = 120;
char current[512] = "";

[[noreturn]] void wrong(const string& what) { throw std::runtime_error(what); }

void require(bool holds, const char* what) {
    if (!holds) wrong(what);
}

void begin(const string& check) {
    std::snprintf(current, sizeof current, "%s\n", check.c_str());
    alarm(kHangsSeconds);
}

void hangs(int) {
    const char* const text = "hangs: ";
    if (write(2, text, std::strlen(text)) < 0 || write(2, current, std::strlen(current)) < 0) {
    }
    _exit(1);
}

// JSON, as far as descriptions need it.
struct Json {
    enum Kind { null, boolean, number, text, array, object } kind = null;
    bool truth = false;
    double value = 0;
    string words;
    std::vector<Json> items;
    std::map<string, Json> members;

    const Json& operator[](const string& name) const {
        const auto found = members.find(name);
        if (kind != object || found == members.end()) wrong("no member `" + name + "`");
        return found->second;
    }
    bool has(const string& name) const { return kind == object && members.count(name) > 0; }
    const string& string_() const {
        if (kind != text) wrong("not a string");
        return words;
    }
    bool bool_() const {
        if (kind != boolean) wrong("not a truth value");
        return truth;
    }
    size_t count() const {
        if (kind != number || value < 0 || value != static_cast<double>(static_cast<size_t>(value)))
            wrong("not a count");
        return static_cast<size_t>(value);
    }
};

class Parser {
public:
    explicit Parser(const char* text) : at_(text) {}

    Json document() {
        Json json = any();
        space();
        if (*at_ != '\0') wrong(string("unexpected: ") + at_);
        return json;
    }

private:
    void space() {
        while (*at_ == ' ' || *at_ == '\t') ++at_;
    }

    bool take(char c) {
        space();
        if (*at_ != c) return false;
        ++at_;
        return true;
    }

    void expect(char c) {
        if (!take(c)) wrong(string("expected ") + c + ": " + at_);
    }

    bool word(const char* text) {
        if (std::strncmp(at_, text, std::strlen(text)) != 0) return false;
        at_ += std::strlen(text);
        return true;
    }

    string quoted() {
        expect('"');
        string words;
        while (*at_ != '"') {
            if (*at_ == '\\') ++at_;
            if (static_cast<unsigned char>(*at_) < 0x20) wrong("a string does not end");
            words += *at_++;
        }
        ++at_;
        return words;
    }

    Json any() {
        Json json;
        space();
        if (*at_ == '"') {
            json.kind = Json::text;
            json.words = quoted();
        } else if (take('{')) {
            json.kind = Json::object;
            if (take('}')) return json;
            do {
                const string name = quoted();
                expect(':');
                json.members[name] = any();
            } while (take(','));
            expect('}');
        } else if (take('[')) {
            json.kind = Json::array;
            if (take(']')) return json;
            do {
                json.items.push_back(any());
            } while (take(','));
            expect(']');
        } else if (word("true")) {
            json.kind = Json::boolean;
            json.truth = true;
        } else if (word("false")) {
            json.kind = Json::boolean;
        } else if (!word("null")) {
            char* end = nullptr;
            json.kind = Json::number;
            json.value = std::strtod(at_, &end);
            if (end == at_) wrong(string("neither value nor end: ") + at_);
            at_ = end;
        }
        return json;
    }

    const char* at_;
};

// The functions of an adapter; optional ones may be null.
struct Adapter {
    explicit Adapter(const char* path) {
        void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            std::fprintf(stderr, "%s\n", dlerror());
            std::exit(2);
        }
        find(library, "tt_describe", describe, true);
        find(library, "tt_create", create, true);
        find(library, "tt_destroy", destroy, true);
        find(library, "tt_send", send, true);
        find(library, "tt_try_recv", try_recv, true);
        find(library, "tt_create_sized", create_sized, false);
        find(library, "tt_enter", enter, false);
        find(library, "tt_send_wait", send_wait, false);
        find(library, "tt_recv", recv, false);
        find(library, "tt_send_many", send_many, false);
        find(library, "tt_recv_many", recv_many, false);
        find(library, "tt_claim", claim, false);
        find(library, "tt_publish", publish, false);
    }

    template <class Function>
    static void find(void* library, const char* name, Function& function, bool required) {
        function = reinterpret_cast<Function>(dlsym(library, name));
        if (required && function == nullptr) wrong(string("there is no function ") + name);
    }

    decltype(&tt_describe) describe;
    decltype(&tt_create) create;
    decltype(&tt_create_sized) create_sized;
    decltype(&tt_destroy) destroy;
    decltype(&tt_enter) enter;
    decltype(&tt_send) send;
    decltype(&tt_try_recv) try_recv;
    decltype(&tt_send_wait) send_wait;
    decltype(&tt_recv) recv;
    decltype(&tt_send_many) send_many;
    decltype(&tt_recv_many) recv_many;
    decltype(&tt_claim) claim;
    decltype(&tt_publish) publish;
};

struct Description {
    string name;
    bool many_senders, many_receivers, bounded, power_of_two, polls, blocks, batches, claims;
    std::vector<size_t> sizes;
};

bool one_of(const Json& json, const char* yes, const char* no) {
    if (json.string_() != yes && json.string_() != no)
        wrong("`" + json.string_() + "` is neither `" + yes + "` nor `" + no + "`");
    return json.string_() == yes;
}

Description read(const Json& json, const Adapter& adapter) {
    Description queue;
    queue.name = json["name"].string_();
    require(!queue.name.empty(), "a queue has no name");
    for (const char c : queue.name)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-')
            wrong("a name has other signs than letters, digits and hyphens");
    require(!json["version"].string_().empty(), "a queue has no version");
    require(!json["sentence"].string_().empty(), "a queue has no sentence");
    queue.many_senders = one_of(json["senders"], "many", "one");
    queue.many_receivers = one_of(json["receivers"], "many", "one");
    queue.bounded = one_of(json["capacity"], "bounded", "unbounded");
    queue.power_of_two = false;
    if (queue.bounded) {
        require(json["slot_bytes"].count() >= 8, "slot_bytes is less than a message");
        queue.power_of_two = json["power_of_two"].bool_();
    }
    queue.polls = queue.blocks = false;
    for (const Json& wait : json["waits"].items) {
        if (one_of(wait, "poll", "block")) {
            queue.polls = true;
        } else {
            queue.blocks = true;
        }
    }
    require(queue.polls || queue.blocks, "a queue has no waits");
    queue.batches = json["batches"].bool_();
    queue.claims = json["claims"].bool_();
    if (queue.blocks && adapter.recv == nullptr) wrong("no tt_recv, but a queue that blocks");
    if (queue.blocks && queue.bounded && adapter.send_wait == nullptr)
        wrong("no tt_send_wait, but a bounded queue that blocks");
    if (queue.batches && (adapter.send_many == nullptr || adapter.recv_many == nullptr))
        wrong("no tt_send_many or tt_recv_many, but a queue with batches");
    if (queue.claims && (adapter.claim == nullptr || adapter.publish == nullptr))
        wrong("no tt_claim or tt_publish, but a queue with claims");
    for (const Json& size : json["message_bytes"].items) queue.sizes.push_back(size.count());
    require(std::count(queue.sizes.begin(), queue.sizes.end(), 8u) == 1, "no messages of 8 bytes");
    if (queue.sizes.size() > 1 && adapter.create_sized == nullptr)
        wrong("no tt_create_sized, but messages of several sizes");
    return queue;
}

// Words of a message count up from its sender and number.
constexpr unsigned kSenderBit = 56;
constexpr unsigned kNumberBit = 20;

uint64_t first_word(uint64_t sender, uint64_t number) {
    return sender << kSenderBit | number << kNumberBit;
}

using Words = std::vector<uint64_t>;

void fill(uint64_t* words, size_t bytes, uint64_t sender, uint64_t number) {
    for (size_t index = 0; index < bytes / 8; ++index)
        words[index] = first_word(sender, number) + index;
}

struct Name {
    uint64_t sender, number;
};

// Checks all words of a message.
Name name_of(const uint64_t* words, size_t bytes) {
    const Name name{words[0] >> kSenderBit,
                    words[0] << (64 - kSenderBit) >> (64 - kSenderBit) >> kNumberBit};
    for (size_t index = 0; index < bytes / 8; ++index)
        if (words[index] != first_word(name.sender, name.number) + index)
            wrong("word " + to_string(index) + " of a message is wrong");
    return name;
}

enum class Way { poll, block, batches, blocking_batches, claims };

const char* name_of(Way way) {
    switch (way) {
        case Way::poll: return "polled";
        case Way::block: return "blocking";
        case Way::batches: return "in batches";
        case Way::blocking_batches: return "blocking, in batches";
        default: return "claimed";
    }
}

std::atomic<uint64_t> verified{0};

// A queue that is being checked.
class Queue {
public:
    Queue(const Adapter& adapter, const Description& description, size_t bytes, size_t capacity)
        : adapter_(adapter), description_(description), bytes_(bytes) {
        queue_ = bytes == 8 ? adapter.create(description.name.c_str(), capacity)
                            : adapter.create_sized(description.name.c_str(), capacity, bytes);
    }
    ~Queue() {
        if (queue_ != nullptr) adapter_.destroy(queue_);
    }
    Queue(const Queue&) = delete;

    explicit operator bool() const { return queue_ != nullptr; }
    size_t bytes() const { return bytes_; }

    void enter(int sender) {
        if (adapter_.enter != nullptr) adapter_.enter(queue_, sender);
    }

    bool try_send(uint64_t sender, uint64_t number) {
        Words words(bytes_ / 8);
        fill(words.data(), bytes_, sender, number);
        const int answer = adapter_.send(queue_, words.data(), bytes_);
        if (answer != TT_TAKEN && answer != TT_FULL)
            wrong("tt_send answers " + to_string(answer));
        if (answer == TT_FULL && !description_.bounded) wrong("an unbounded queue is full");
        return answer == TT_TAKEN;
    }

    bool try_receive(Name& name) {
        Words words(bytes_ / 8);
        const long answer = adapter_.try_recv(queue_, words.data(), bytes_);
        if (answer == TT_NOTHING) return false;
        if (answer != static_cast<long>(bytes_)) wrong("tt_try_recv answers " + to_string(answer));
        name = name_of(words.data(), bytes_);
        return true;
    }

    // Sends messages `from` to `to` - 1 of a sender.
    void send(Way way, uint64_t sender, uint64_t from, uint64_t to) {
        Words words(bytes_ / 8 * kBatch);
        for (uint64_t next = from; next < to;) {
            switch (way) {
                case Way::block:
                    fill(words.data(), bytes_, sender, next++);
                    wait_to_send(words.data());
                    break;
                case Way::batches:
                case Way::blocking_batches: {
                    const size_t count = std::min<uint64_t>(1 + next % kBatch, to - next);
                    for (size_t index = 0; index < count; ++index)
                        fill(&words[index * bytes_ / 8], bytes_, sender, next + index);
                    const size_t sent = adapter_.send_many(queue_, words.data(), bytes_, count);
                    if (sent > count) wrong("tt_send_many sends more than it was given");
                    if (sent == 0 && way == Way::blocking_batches) {
                        wait_to_send(words.data());
                        ++next;
                    } else if (sent == 0) {
                        std::this_thread::yield();
                    }
                    next += sent;
                    break;
                }
                case Way::claims: {
                    void* const place = adapter_.claim(queue_, bytes_);
                    if (place == nullptr) {
                        std::this_thread::yield();
                    } else {
                        fill(static_cast<uint64_t*>(place), bytes_, sender, next++);
                        adapter_.publish(queue_);
                    }
                    break;
                }
                default:
                    if (try_send(sender, next)) {
                        ++next;
                    } else {
                        std::this_thread::yield();
                    }
            }
        }
    }

    // Receives messages until `take` returns false; `limit` returns how many it can use.
    void receive(Way way, const std::function<bool(Name)>& take,
                 const std::function<uint64_t()>& limit) {
        Words words(bytes_ / 8 * kBatch);
        size_t turn = 0;
        for (;;) {
            size_t count = 0;
            const bool blocks = way == Way::block || way == Way::blocking_batches;
            if (way == Way::batches || way == Way::blocking_batches) {
                const size_t most = std::min<uint64_t>(1 + turn++ % kBatch, limit());
                count = adapter_.recv_many(queue_, words.data(), bytes_, most);
                if (count > most) wrong("tt_recv_many returns more than it may");
            }
            if (count == 0 && blocks) {
                const long answer = adapter_.recv(queue_, words.data(), bytes_);
                if (answer != static_cast<long>(bytes_))
                    wrong("tt_recv answers " + to_string(answer));
                count = 1;
            }
            if (count == 0 && (way == Way::poll || way == Way::claims)) {
                const long answer = adapter_.try_recv(queue_, words.data(), bytes_);
                if (answer != TT_NOTHING && answer != static_cast<long>(bytes_))
                    wrong("tt_try_recv answers " + to_string(answer));
                count = answer == TT_NOTHING ? 0 : 1;
            }
            if (count == 0) std::this_thread::yield();
            for (size_t index = 0; index < count; ++index)
                if (!take(name_of(&words[index * bytes_ / 8], bytes_))) return;
        }
    }

    // Receives messages `from` to `to` - 1 of a sender, in order.
    void receive_all(Way way, uint64_t sender, uint64_t from, uint64_t to) {
        uint64_t next = from;
        if (next == to) return;
        receive(
            way,
            [&](Name name) {
                if (name.sender != sender || name.number != next)
                    wrong("message " + to_string(name.number) + " of sender " +
                          to_string(name.sender) + " came in place of message " + to_string(next) +
                          " of sender " + to_string(sender));
                ++verified;
                return ++next < to;
            },
            [&] { return to - next; });
    }

    void must_be_empty() {
        Name name;
        if (try_receive(name)) wrong("message " + to_string(name.number) + " came again");
        if (description_.batches) {
            Words words(bytes_ / 8);
            if (adapter_.recv_many(queue_, words.data(), bytes_, 1) != 0)
                wrong("tt_recv_many finds a message in an empty queue");
        }
    }

    // Sends or receives more messages than there is room for, or than are there, by one call.
    size_t send_at_once(uint64_t sender, uint64_t from, size_t count) {
        Words words(bytes_ / 8 * count);
        for (size_t index = 0; index < count; ++index)
            fill(&words[index * bytes_ / 8], bytes_, sender, from + index);
        return adapter_.send_many(queue_, words.data(), bytes_, count);
    }
    size_t receive_at_once(uint64_t sender, uint64_t from, size_t most) {
        Words words(bytes_ / 8 * most);
        const size_t count = adapter_.recv_many(queue_, words.data(), bytes_, most);
        if (count > most) wrong("tt_recv_many returns more than it may");
        for (size_t index = 0; index < count; ++index) {
            const Name name = name_of(&words[index * bytes_ / 8], bytes_);
            if (name.sender != sender || name.number != from + index)
                wrong("a batch is not in order");
        }
        return count;
    }

    static constexpr size_t kBatch = 7;

private:
    void wait_to_send(const uint64_t* words) {
        const int answer = description_.bounded ? adapter_.send_wait(queue_, words, bytes_)
                                                : adapter_.send(queue_, words, bytes_);
        if (answer != TT_TAKEN) wrong("waiting for room answers " + to_string(answer));
    }

    const Adapter& adapter_;
    const Description& description_;
    const size_t bytes_;
    void* queue_;
};

[[noreturn]] void fail(const std::exception& error) {
    current[std::strcspn(current, "\n")] = '\0';
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", current, error.what());
    // Other threads may wait for ever.
    _exit(1);
}

void run(const std::vector<std::function<void()>>& parts) {
    std::vector<std::thread> threads;
    for (const auto& part : parts) {
        threads.emplace_back([part] {
            try {
                part();
            } catch (const std::exception& error) {
                fail(error);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

std::vector<Way> ways(const Description& queue) {
    std::vector<Way> ways;
    if (queue.polls) ways.push_back(Way::poll);
    if (queue.blocks) ways.push_back(Way::block);
    if (queue.polls && queue.batches) ways.push_back(Way::batches);
    if (queue.blocks && queue.batches) ways.push_back(Way::blocking_batches);
    if (queue.claims) ways.push_back(Way::claims);
    return ways;
}

// One thread that is both ends.
void alone(Queue& queue, const Description& description, size_t capacity) {
    queue.enter(0);
    queue.enter(-1);
    queue.must_be_empty();
    const uint64_t room =
        description.bounded ? capacity : std::min<size_t>(3000, (8 << 20) / queue.bytes());
    uint64_t sent = 0, received = 0;
    const auto receive = [&](uint64_t count) {
        queue.receive_all(Way::poll, 0, received, received + count);
        received += count;
    };
    for (int round = 0; round < 3; ++round) {
        while (sent - received < room) {
            if (!queue.try_send(0, sent)) wrong("full with fewer messages than its capacity");
            ++sent;
        }
        if (description.bounded && queue.try_send(0, sent)) wrong("not full at its capacity");
        receive(room / 2 + 1);
        while (sent - received < room) {
            if (!queue.try_send(0, sent)) wrong("room that was made is not there");
            ++sent;
        }
        receive(room);
        queue.must_be_empty();
    }
    for (int round = 0; round < 100; ++round) {
        if (!queue.try_send(0, sent)) wrong("an empty queue is full");
        ++sent;
        receive(1);
    }
    queue.must_be_empty();
    if (!description.batches) return;
    // Batches larger than the room, and than what is there.
    if (!queue.try_send(0, sent)) wrong("an empty queue is full");
    const size_t batch = queue.send_at_once(0, ++sent, room + 5);
    if (batch != (description.bounded ? room - 1 : room + 5))
        wrong("of " + to_string(room + 5) + " messages, tt_send_many sends " + to_string(batch));
    sent += batch;
    while (received < sent) {
        const size_t count = queue.receive_at_once(0, received, room + 7);
        if (count == 0) wrong("tt_recv_many does not find all messages");
        received += count;
    }
    queue.must_be_empty();
}

// A sender and a receiver.
void two(Queue& queue, Way way, uint64_t count) {
    run({[&] {
             queue.enter(0);
             queue.send(way, 0, 0, count);
         },
         [&] {
             queue.enter(-1);
             queue.receive_all(way, 0, 0, count);
         }});
    queue.must_be_empty();
    // Other threads go on.
    run({[&] {
             queue.enter(0);
             queue.send(way, 0, count, count + 100);
         },
         [&] {
             queue.enter(-1);
             queue.receive_all(way, 0, count, count + 100);
         }});
    queue.must_be_empty();
}

// Messages go over one queue and come back over another.
void there_and_back(Queue& there, Queue& back, Way way, uint64_t count) {
    run({[&] {
             there.enter(0);
             back.enter(-1);
             for (uint64_t next = 0; next < count; ++next) {
                 there.send(way, 0, next, next + 1);
                 back.receive_all(way, 0, next, next + 1);
             }
         },
         [&] {
             back.enter(0);
             there.enter(-1);
             for (uint64_t next = 0; next < count; ++next) {
                 there.receive_all(way, 0, next, next + 1);
                 back.send(way, 0, next, next + 1);
             }
         }});
}

// Several senders, and several receivers if there may be. The main thread sends a last message to
// each receiver.
void many(Queue& queue, Way way, uint64_t senders, size_t receivers, uint64_t each) {
    constexpr uint64_t kLast = 255;
    std::mutex mutex;
    std::vector<Name> names;
    std::atomic<uint64_t> sending{senders};
    std::vector<std::function<void()>> parts;
    for (uint64_t sender = 0; sender < senders; ++sender) {
        parts.push_back([&, sender] {
            queue.enter(static_cast<int>(sender));
            queue.send(way, sender, 0, each);
            if (--sending == 0) queue.send(way, kLast, 0, receivers);
        });
    }
    for (size_t receiver = 0; receiver < receivers; ++receiver) {
        parts.push_back([&] {
            queue.enter(-1);
            std::vector<Name> mine;
            std::map<uint64_t, uint64_t> next;
            queue.receive(
                way,
                [&](Name name) {
                    if (name.sender != kLast) {
                        if (name.number < next[name.sender])
                            wrong("a receiver got message " + to_string(name.number) +
                                  " of sender " + to_string(name.sender) + " too late");
                        next[name.sender] = name.number + 1;
                    }
                    mine.push_back(name);
                    return name.sender != kLast;
                },
                [] { return uint64_t{1}; });
            const std::lock_guard<std::mutex> lock(mutex);
            names.insert(names.end(), mine.begin(), mine.end());
        });
    }
    run(parts);
    // Queues without an order between senders may have some left.
    queue.enter(-1);
    Name name;
    while (queue.try_receive(name)) names.push_back(name);
    std::set<std::pair<uint64_t, uint64_t>> different;
    for (const Name& one : names) different.emplace(one.sender, one.number);
    const uint64_t expected = senders * each + receivers;
    if (names.size() != expected || different.size() != expected)
        wrong(to_string(names.size()) + " messages came, " + to_string(different.size()) +
              " different ones, of " + to_string(expected));
    verified += names.size();
}

// An end that waits is woken by the other one.
void waits(Queue& queue, const Description& description, size_t capacity) {
    const auto later = std::chrono::milliseconds(30);
    for (uint64_t next = 0; next < 3; ++next) {
        run({[&] {
                 queue.enter(-1);
                 queue.receive_all(Way::block, 0, next, next + 1);
             },
             [&] {
                 queue.enter(0);
                 std::this_thread::sleep_for(later);
                 queue.send(Way::block, 0, next, next + 1);
             }});
    }
    if (!description.bounded) return;
    std::atomic<bool> sent{false};
    run({[&] {
             queue.enter(0);
             queue.send(Way::block, 0, 0, capacity + 1);
             sent = true;
         },
         [&] {
             queue.enter(-1);
             std::this_thread::sleep_for(later);
             if (sent) wrong("tt_send_wait did not wait for room");
             queue.receive_all(Way::block, 0, 0, capacity + 1);
         }});
}

void refuses(const Adapter& adapter, const Description& queue) {
    const char* const name = queue.name.c_str();
    const auto never = [&](const char* name, size_t capacity, size_t bytes, const char* why) {
        void* const made = bytes == 8 ? adapter.create(name, capacity)
                                      : adapter.create_sized(name, capacity, bytes);
        if (made != nullptr) wrong(string("makes ") + why);
    };
    const size_t capacity = queue.bounded ? 64 : 0;
    never("no such queue", capacity, 8, "a queue that it does not have");
    never("", capacity, 8, "a queue without a name");
    if (adapter.create_sized != nullptr) {
        for (const size_t bytes : {size_t{0}, size_t{7}, size_t{12}, size_t{1} << 40})
            never(name, capacity, bytes, "a queue of messages of a size that it does not have");
    }
    if (!queue.bounded) return;
    never(name, 0, 8, "a bounded queue for no message");
    for (const size_t huge : {size_t{1} << 50, size_t{1} << 62, ~size_t{0}})
        never(name, huge, 8, "a queue larger than the memory");
    if (queue.power_of_two) never(name, 48, 8, "a queue whose capacity is no power of two");
}

void check(const Adapter& adapter, const Description& description) {
    const string& name = description.name;
    begin(name + ", queues that cannot be");
    refuses(adapter, description);
    string sizes;
    std::set<size_t> capacities;
    for (const size_t bytes : description.sizes) {
        sizes += " " + to_string(bytes);
        const uint64_t count = std::min<uint64_t>(30'000, (16 << 20) / bytes);
        std::vector<size_t> wanted = {0};
        if (description.bounded) wanted = {1, 2, 4, 64, 1000, 4096};
        size_t made = 0;
        for (const size_t capacity : wanted) {
            if (capacity * bytes > 64 << 20) continue;
            const string what =
                name + ", " + to_string(bytes) + " bytes, capacity " + to_string(capacity);
            const auto one = [&] { return Queue(adapter, description, bytes, capacity); };
            begin(what);
            {
                Queue queue = one();
                if (!queue) continue;
                ++made;
                capacities.insert(capacity);
                alone(queue, description, capacity);
            }
            {
                Queue left = one();
                left.enter(0);
                for (uint64_t next = 0; next < 100; ++next) left.try_send(0, next);
            }
            for (const Way way : ways(description)) {
                begin(what + ", two threads, " + name_of(way));
                Queue queue = one();
                two(queue, way, count);
                begin(what + ", there and back, " + name_of(way));
                Queue there = one(), back = one();
                there_and_back(there, back, way, std::min<uint64_t>(count, 2000));
                if (description.many_senders) {
                    begin(what + ", many senders, " + name_of(way));
                    Queue funnel = one();
                    many(funnel, way, 4, 1, count / 8);
                    begin(what + ", many senders and receivers, " + name_of(way));
                    Queue crowd = one();
                    if (description.many_receivers) many(crowd, way, 3, 3, count / 8);
                }
            }
            if (description.blocks) {
                begin(what + ", waiting");
                Queue queue = one();
                waits(queue, description, capacity);
            }
        }
        if (made == 0) wrong("there is no queue of messages of " + to_string(bytes) + " bytes");
    }
    string list;
    for (const size_t capacity : capacities) list += " " + to_string(capacity);
    std::printf("%s: messages of%s bytes", name.c_str(), sizes.c_str());
    if (description.bounded) std::printf(", capacities%s", list.c_str());
    for (const Way way : ways(description)) std::printf(", %s", name_of(way));
    std::printf("%s%s\n", description.many_senders ? ", many senders" : "",
                description.many_receivers ? ", many receivers" : "");
    std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) {
        std::fprintf(stderr, "usage: %s ADAPTER.so [QUEUE…]\n", arguments[0]);
        return 2;
    }
    signal(SIGALRM, hangs);
    try {
        begin("description");
        const Adapter adapter(arguments[1]);
        const char* const text = adapter.describe();
        require(text != nullptr, "tt_describe returns null");
        require(std::strchr(text, '\n') == nullptr, "the description has several lines");
        const Json json = Parser(text).document();
        require(json["adapter"].count() == TT_ADAPTER, "another version of the interface");
        for (const char* const member : {"language", "compiler", "flags"}) json[member].string_();
        std::printf("%s: %s, %s, %s\n", arguments[1], json["language"].words.c_str(),
                    json["compiler"].words.c_str(), json["flags"].words.c_str());
        std::set<string> names;
        size_t checked = 0;
        for (const Json& one : json["queues"].items) {
            const Description queue = read(one, adapter);
            require(names.insert(queue.name).second, "two queues have one name");
            const auto asked = std::find(arguments + 2, arguments + count, queue.name);
            if (count > 2 && asked == arguments + count) continue;
            check(adapter, queue);
            ++checked;
        }
        if (checked == 0) wrong("there is no such queue");
        std::printf("%zu queues, %llu messages verified\n", checked,
                    static_cast<unsigned long long>(verified.load()));
    } catch (const std::exception& error) {
        fail(error);
    }
}

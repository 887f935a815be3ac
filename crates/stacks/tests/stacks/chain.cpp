// The program of chain.c with what only C++ has: methods, templates, closures, exceptions.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

#define EXTRA_ENDS step_std_lock, step_std_condition, step_std_sleep,
#define EXTRA_STEPS step_virtual, step_template<3>, step_closure, step_catch,

#ifndef LOCAL
#define LOCAL static
#endif

struct chain;
LOCAL long step_std_lock(chain *, long);
LOCAL long step_std_condition(chain *, long);
LOCAL long step_std_sleep(chain *, long);
LOCAL long step_virtual(chain *, long);
template <int N> long step_template(chain *, long);
LOCAL long step_closure(chain *, long);
LOCAL long step_catch(chain *, long);

#include "chain.c"

static std::mutex std_lock;
static std::condition_variable std_never;

NOINLINE LOCAL long step_std_lock(chain *c, long x) {
    static std::mutex &held = *[] {
        static std::mutex m;
        m.lock();
        return &m;
    }();
    ENTER, leave(c);
    std::lock_guard<std::mutex> guard(held);
    return x;
}

NOINLINE LOCAL long step_std_condition(chain *c, long x) {
    ENTER, leave(c);
    std::unique_lock<std::mutex> guard(std_lock);
    std_never.wait(guard, [] { return false; });
    return x;
}

NOINLINE LOCAL long step_std_sleep(chain *c, long x) {
    ENTER, leave(c);
    std::this_thread::sleep_for(std::chrono::hours(1000));
    AFTER;
    return x;
}

struct shape {
    virtual ~shape() {}
    virtual long step_turn(chain *c, long x) = 0;
};

struct rounded : shape {
    double radius = 2;
    NOINLINE long step_turn(chain *c, long x) override {
        ENTER;
        x = next(c, x + (long)radius);
        AFTER;
        return x + (long)radius;
    }
};

NOINLINE LOCAL long step_virtual(chain *c, long x) {
    rounded r;
    shape *volatile s = &r;
    ENTER;
    x = s->step_turn(c, x);
    AFTER;
    return x;
}

template <int N> NOINLINE long step_template(chain *c, long x) {
    ENTER;
    volatile char room[N * 100];
    room[x & 7] = N;
    if constexpr (N > 1)
        x = step_template<N - 1>(c, x);
    else
        x = next(c, x);
    AFTER;
    return x + room[x & 7];
}

NOINLINE LOCAL long step_closure(chain *c, long x) {
    ENTER;
    std::function<long(long)> f = [c](long y) {
        long z = next(c, y);
        AFTER;
        return z + 1;
    };
    x = f(x);
    AFTER;
    return x;
}

NOINLINE LOCAL void throws(long x) {
    if (x != -5)
        throw std::runtime_error("caught at once");
}

NOINLINE LOCAL long step_catch(chain *c, long x) {
    ENTER;
    try {
        throws(x);
    } catch (const std::runtime_error &) {
        x = next(c, x);
        AFTER;
    }
    return x;
}

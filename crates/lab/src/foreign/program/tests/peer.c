/* A program of the protocol in docs/peers.md whose figures are made up. The name under which it is
 * started says how it misbehaves. Tests compile it. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *mode;

static int is(const char *name) { return strcmp(mode, name) == 0; }

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void rest(long long ns) {
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    while (nanosleep(&time, &time)) {
    }
}

/* Leaves a process behind that holds all pipes open and cannot be told to end. */
static void leave(int own_session) {
    signal(SIGCHLD, SIG_IGN);
    if (fork() != 0) return;
    if (own_session) {
        setsid();
        if (fork() != 0) _exit(0);
    }
    for (int number = 1; number < 32; number++) signal(number, SIG_IGN);
    for (;;) pause();
}

static volatile int computing;

static void *compute(void *unused) {
    for (;;) {
        while (computing) {
        }
        rest(1000000);
    }
    return unused;
}

static void describe(void) {
    const char *waits = is("own-wait") ? "spin" : "poll";
    printf("{\"program\":1,\"language\":\"c\",\"runtime\":\"none\",\"compiler\":\"cc\",\"flags\":\"\","
           "\"peers\":[{\"kind\":\"queue\",\"name\":\"%s\",\"version\":\"1\",\"sentence\":\"s\","
           "\"scenarios\":[\"ask-reply\",\"stream\",\"open-loop\",\"burst\",\"workers\","
           "\"funnel\",\"depth\",\"flood\"],\"senders\":\"many\","
           "\"capacity\":\"unbounded\",\"waits\":[\"%s\",\"block\"],\"batches\":false},"
           "{\"kind\":\"mechanism\",\"name\":\"%s-spin\",\"version\":\"1\",\"sentence\":\"s\","
           "\"class\":\"spin\",\"waits\":[]},"
           "{\"kind\":\"contention\",\"scenario\":\"pool\",\"name\":\"%s-fair\","
           "\"version\":\"1\",\"sentence\":\"s\"}]}\n",
           mode, waits, mode, mode);
}

/* The number after a key of a request, or 0. */
static long asked(const char *prepared, const char *key) {
    const char *at = strstr(prepared, key);
    return at ? atol(at + strlen(key)) : 0;
}

/* Figures of a block of 10 ms. */
static void block(const char *prepared) {
    if (is("early")) {
        printf("count 1\n100 1000000000\nmean_ns 1\nchecked 1000000001\nend\n");
        return;
    }
    if (is("exits")) exit(3);
    if (is("crashes")) abort();
    if (is("silent")) rest(3600LL * 1000000000);
    if (is("drips")) {
        for (;;) {
            putchar('1');
            fflush(stdout);
            rest(20000000);
        }
    }
    if (is("floods")) for (;;) fputs("1111111111111111", stdout);
    if (is("many-lines")) return (void)printf("count 99999999\n");
    if (is("rubbish")) return (void)printf("\x1b[2J\x80\xffhello\n");
    if (is("words")) return (void)printf("segmentation fault, sorry\n");
    if (is("closes-output")) {
        close(1);
        for (;;) pause();
    }
    if (is("reports")) return (void)printf("error a message was lost\n");
    if (!is("hurries")) rest(10000000);
    if (strstr(prepared, " ask-reply ") || strstr(prepared, "latency")) {
        const char *first = is("disorder") ? "2000 5" : is("twice") ? "1000 5" : "500 5";
        printf("count 2\n%s\n1000 3000\n", first);
        if (is("negative")) return (void)printf("mean_ns -500\n");
        if (is("no-mean")) printf("mean 500\n");
        else printf("mean_ns 500.5\n");
        /* 3,005 trips of 1 µs and 13,000 of 500 ns fill the block. */
        printf("checked %d\n", is("loses") ? 3004 : is("slow-stamps") ? 3405 : 16005);
    } else if (strstr(prepared, " stream ")) {
        printf("count 30000\nrate_per_s %s\nchecked %d\n", is("brags") ? "20000000000" : "2000000",
               is("loses") ? 29999 : is("repeats") ? 30001 : 30000);
    } else if (strstr(prepared, " workers ")) {
        long receivers = asked(prepared, " receivers=");
        printf("count %ld\nelapsed_ns %s\nshared 1\n", 1000 * receivers,
               is("early-workers") ? "999999999999" : "9500000");
        for (long at = 0; at < receivers; at++) printf("received %d\n", is("hides") ? 999 : 1000);
        printf("checked %ld\n", 1000 * receivers - is("loses"));
    } else if (strstr(prepared, " depth ")) {
        long depth = asked(prepared, " depth="), count = 128 * (depth < 128 ? depth : 128);
        printf("count %ld\nsend_ns %s\nreceive_ns 20.5\nelapsed_ns 9000000\nchecked %ld\n", count,
               is("long-calls") ? "5000" : "10", depth + count - is("loses"));
    } else if (strstr(prepared, " flood ")) {
        printf("count 1\n%s 90\nelapsed_ns 9000000\nsent 5000\nchecked %d\n",
               is("long-calls") ? "500000" : "250", 5000 - is("loses"));
    } else if (strstr(prepared, " funnel ")) {
        long important = asked(prepared, " important=");
        long chatty = asked(prepared, " senders=") - important;
        printf("count 1\n300 %ld\nlateness 1\n40 %ld\nsent 1000\nelapsed_ns 9500000\n"
               "window_ns 9000000\ndue %ld\nreceived %ld\n",
               9 * important, 9 * important, 9 * important, 9 * important);
        if (chatty > 0) printf("chatty 1\n700 800\n");
        else printf("chatty 0\n");
        for (long at = 0; at < chatty; at++) printf("mean_ns %s\n", is("disorder") ? "800" : "700");
        printf("checked %d\n", 1000 - is("loses"));
    } else if (strstr(prepared, "contention")) {
        printf("count 20\nelapsed_ns 9000000\nqueue_on_entry_mean 1.5\nchecked 20\n");
    } else {
        int due = is("slow") ? 400 : 900;
        printf("count 2\n300 800\n600 100\nlateness 1\n40 900\nbusy_ns 450000\nsent 1000\n"
               "elapsed_ns 9500000\nwindow_ns 9000000\ndue %d\nreceived 890\n", due);
        if (strstr(prepared, " burst "))
            printf("first_ns 300\nlast_ns %d\ndrain_ns 100.5\nbursts 9\nfound_empty 9\n",
                   is("disorder") ? 200 : 600);
        printf("checked %d\n", is("loses") ? 999 : 1000);
    }
    if (is("more")) printf("checked 5\n");
    if (is("settles")) printf("end settling_ns=6000000\n");
    else printf(is("unsettled") ? "end settled\n" : "end\n");
}

int main(int count, char **words) {
    static char line[4096], prepared[4096];
    (void)count;
    mode = strrchr(words[0], '/');
    mode = mode ? mode + 1 : words[0];
    long long first = 0;
    if (is("ignores-quit")) for (int number = 1; number < 32; number++) signal(number, SIG_IGN);
    if (is("forks") || is("escapes")) leave(is("escapes"));
    if (is("dies")) return 1;
    pthread_t thread;
    if (is("computes")) pthread_create(&thread, NULL, compute, NULL);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (strcmp(line, "hello") == 0) {
            if (is("mute")) rest(3600LL * 1000000000);
            if (is("not-json")) printf("good day\n");
            else describe();
        } else if (strcmp(line, "clock") == 0) {
            long long time = now();
            if (first == 0) first = time;
            if (is("ahead")) time += 3000000000LL;
            if (is("fast")) time += (time - first) / 2;
            printf("clock %lld\n", time);
        } else if (strncmp(line, "prepare ", 8) == 0) {
            strcpy(prepared, line);
            if (is("refuses")) printf("error there is no memory for that\n");
            else if (is("boasts")) printf("ready warm_up_ms=600000\n");
            else printf("ready warm_up_ms=0\n");
            if (is("talks")) printf("by the way\n");
            if (is("closes-input")) {
                close(0);
                fflush(stdout);
                for (;;) pause();
            }
        } else if (strncmp(line, "block ", 6) == 0) {
            computing = 0;
            block(prepared);
            computing = 1;
        } else if (strcmp(line, "quit") == 0) {
            if (is("ignores-quit")) continue;
            return 0;
        } else {
            printf("error that is not a request\n");
        }
        fflush(stdout);
    }
    if (is("ignores-quit")) for (;;) pause();
    return 0;
}

/* A program of the protocol in docs/dev/peers.md whose figures are made up. The name under which it
 * is started says how it misbehaves. Tests compile it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *mode;

static int is(const char *name) { return strcmp(mode, name) == 0; }

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

static void describe(void) {
    const char *waits = is("own-wait") ? "spin" : "poll";
    printf("{\"program\":1,\"language\":\"c\",\"runtime\":\"none\",\"compiler\":\"cc\",\"flags\":\"\","
           "\"peers\":[{\"kind\":\"queue\",\"name\":\"%s\",\"version\":\"1\",\"sentence\":\"s\","
           "\"scenarios\":[\"ask-reply\",\"stream\"],\"waits\":[\"%s\",\"block\"]},"
           "{\"kind\":\"mechanism\",\"name\":\"%s-spin\",\"version\":\"1\",\"sentence\":\"s\","
           "\"class\":\"spin\"},"
           "{\"kind\":\"contention\",\"scenario\":\"pool\",\"name\":\"%s-fair\","
           "\"version\":\"1\",\"sentence\":\"s\"}]}\n",
           mode, waits, mode, mode);
}

/* Figures of a block of 10 ms. */
static void block(const char *prepared) {
    if (is("early")) {
        printf("count 1\n100000000 1000\nmean_ns 1\nchecked 1001\nend\n");
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
    if (is("many-trips")) return (void)printf("count 1\n100 99999999\n");
    if (is("rubbish")) return (void)printf("\x1b[2J\x80\xffhello\n");
    if (is("words")) return (void)printf("segmentation fault, sorry\n");
    if (is("closes-output")) {
        close(1);
        for (;;) pause();
    }
    if (is("reports")) return (void)printf("error a message was lost\n");
    rest(10000000);
    if (strstr(prepared, " ask-reply ") || strstr(prepared, "latency")) {
        printf("count 2\n500 5\n1000 3000\n");
        if (is("negative")) return (void)printf("mean_ns -500\n");
        if (is("no-mean")) printf("mean 500\n");
        else printf("mean_ns 500.5\n");
        /* 3,005 trips of 1 µs and 13,000 of 500 ns fill the block. */
        printf("checked %d\n", is("loses") ? 3004 : 16005);
    } else if (strstr(prepared, " stream ")) {
        printf("count 30000\nrate_per_s 2000000\nchecked %d\n", is("loses") ? 29999 : 30000);
    } else {
        printf("count 20\nelapsed_ns 9000000\nqueue_on_entry_mean 1.5\nchecked 20\n");
    }
    if (is("settles")) printf("end settling_ns=6000000\n");
    else printf(is("unsettled") ? "end settled\n" : "end\n");
}

int main(int count, char **words) {
    static char line[4096], prepared[4096];
    (void)count;
    mode = strrchr(words[0], '/');
    mode = mode ? mode + 1 : words[0];
    if (is("ignores-quit")) for (int number = 1; number < 32; number++) signal(number, SIG_IGN);
    if (is("forks") || is("escapes")) leave(is("escapes"));
    if (is("dies")) return 1;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (strcmp(line, "hello") == 0) {
            if (is("mute")) rest(3600LL * 1000000000);
            if (is("not-json")) printf("good day\n");
            else describe();
        } else if (strncmp(line, "prepare ", 8) == 0) {
            strcpy(prepared, line);
            if (is("refuses")) printf("error there is no memory for that\n");
            else printf("ready warm_up_ms=0\n");
            if (is("talks")) printf("by the way\n");
            if (is("closes-input")) {
                close(0);
                fflush(stdout);
                for (;;) pause();
            }
            if (is("deaf")) {
                fflush(stdout);
                usleep(300000);
                close(0);
                for (;;) pause();
            }
        } else if (strncmp(line, "block ", 6) == 0) {
            block(prepared);
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

// Programs that are slow for other reasons than locks, though each has a lock and uses it a little.
//
//     not-locks cpu|disk|socket|idle --threads N --truth FOLDER
#include "locks.h"
#include "options.h"
#include "work.h"
#include <sys/socket.h>

static struct lock counter_lock, job_lock;
static long total;
static int jobs, closed, sockets[256][2];

static void count_one(void) { HOLD(&counter_lock, total++); }

static void *computer(void *unused) {
    for (; !stopping; count_one()) compute_for(2e6);
    return unused;
}

static void *writer(void *unused) {
    for (; !stopping; count_one()) write_for(1);
    return unused;
}

static void *client(void *argument) {
    int socket = sockets[(intptr_t)argument][0];
    char request = 1;
    for (; !stopping; count_one())
        if (send(socket, &request, 1, 0) != 1 || recv(socket, &request, 1, 0) != 1) break;
    return NULL;
}

static void *server(void *argument) {
    int socket = sockets[(intptr_t)argument][1];
    char request;
    while (recv(socket, &request, 1, 0) == 1) {
        sleep_for(1e6);
        if (send(socket, &request, 1, MSG_NOSIGNAL) != 1) break;
    }
    return NULL;
}

static void *pool_worker(void *unused) {
    take(&job_lock);
    for (;;) {
        while (jobs == 0 && !closed) wait_for(&job_lock);
        if (closed) break;
        jobs--;
        let_go(&job_lock);
        compute_for(50e3);
        count_one();
        take(&job_lock);
    }
    let_go(&job_lock);
    return unused;
}

static void *poster(void *unused) {
    while (!stopping) {
        sleep_for(20e6);
        take(&job_lock);
        jobs++;
        wake_one(&job_lock);
        let_go(&job_lock);
    }
    return unused;
}

int main(int count, char **words) {
    option_count = count, option_words = words;
    const char *what = count > 1 ? words[1] : "";
    int threads = number("threads", "4");
    if (threads > 256) return 2;
    void *(*run)(void *) = NULL;
    start_account(option("truth", NULL));
    calibrate();
    set_up(&counter_lock, 0, MUTEX, "counter_lock");
    set_up(&job_lock, 1, MUTEX, "job_lock");
    if (!strcmp(what, "cpu")) run = computer;
    if (!strcmp(what, "disk")) run = writer;
    if (!strcmp(what, "idle")) run = pool_worker;
    if (!strcmp(what, "socket")) {
        run = client;
        for (int i = 0; i < threads; i++)
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets[i])) fail("socketpair");
        // The server is a process of its own: its threads are not the program's.
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (int i = 0; i < threads; i++) close(sockets[i][0]);
            for (int i = 0; i < threads; i++)
                start_thread("server", server, (void *)(intptr_t)i);
            for (;;) pause();
        }
        for (int i = 0; i < threads; i++) close(sockets[i][1]);
    }
    if (!run) {
        fprintf(stderr, "no such program: %s\n", what);
        return 2;
    }
    print_lock(&counter_lock, 1);
    pthread_t started[256];
    for (int i = 0; i < threads; i++)
        started[i] = start_thread(what, run, (void *)(intptr_t)i);
    pthread_t posting = run == pool_worker ? start_thread("poster", poster, NULL) : 0;
    run_until_told();
    if (posting) pthread_join(posting, NULL);
    take(&job_lock);
    closed = 1;
    wake_all(&job_lock);
    let_go(&job_lock);
    for (int i = 0; i < threads; i++) pthread_join(started[i], NULL);
    print_gaps(counter_lock.id, &counter_lock.gaps);
    return 0;
}

// Four processes take turns to accept a connection under a mutex that they share, as Apache's do;
// a client connects every 40 ms. The pool has nothing to do: the mutex costs nothing.
#include "account.h"
#include <arpa/inet.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static pthread_mutex_t *accept_mutex;
static int listener;

APART static void serve(void) {
    for (;;) {
        pthread_mutex_lock(accept_mutex);
        int connection = accept(listener, NULL, NULL);
        pthread_mutex_unlock(accept_mutex);
        compute_us(200);
        close(connection);
    }
}

int main(int argc, char **argv) {
    accept_mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(accept_mutex, &shared);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    if (bind(listener, (void *)&at, length) || listen(listener, 16)) return 1;
    getsockname(listener, (void *)&at, &length);
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            serve();
        }
    double seconds = argc > 1 ? atof(argv[1]) : 7;
    for (uint64_t end = now_ns() + (uint64_t)(seconds * 1e9); now_ns() < end;) {
        nap_us(40000);
        int client = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(client, (void *)&at, length)) return 1;
        close(client);
    }
    quit();
}

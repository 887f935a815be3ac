// Load for memcached on the loopback: each connection is a thread that sends a request and waits for
// the whole reply. Nine gets of ten keys to one set, of 10,000 keys with 100 bytes each.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { KEYS = 10000, VALUE = 100, KEYS_IN_A_GET = 10 };

static int port;
static time_t end;

static int dial(void) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((unsigned short)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
        perror("connect");
        exit(1);
    }
    return fd;
}

static void ask(int fd, const char *request, const char *last, char *reply, size_t size) {
    size_t length = strlen(request), got = 0;
    if (write(fd, request, length) != (ssize_t)length) {
        perror("write");
        exit(1);
    }
    do {
        ssize_t n = read(fd, reply + got, size - 1 - got);
        if (n <= 0) {
            fprintf(stderr, "the server hung up\n");
            exit(1);
        }
        got += (size_t)n;
        reply[got] = 0;
    } while (got < strlen(last) || strcmp(reply + got - strlen(last), last));
}

static void set(char *request, size_t size, unsigned key) {
    snprintf(request, size, "set key-%u 0 0 %d\r\n%0*u\r\n", key, VALUE, VALUE, key);
}

static void *client(void *seed) {
    unsigned random = (unsigned)(size_t)seed;
    char request[512], reply[8192];
    int fd = dial();
    size_t *done = calloc(1, sizeof *done);
    for (; time(NULL) < end; ++*done) {
        if (rand_r(&random) % 10) {
            size_t at = (size_t)snprintf(request, sizeof request, "get");
            for (int i = 0; i < KEYS_IN_A_GET; i++)
                at += (size_t)snprintf(request + at, sizeof request - at, " key-%u",
                                       rand_r(&random) % KEYS);
            snprintf(request + at, sizeof request - at, "\r\n");
            ask(fd, request, "END\r\n", reply, sizeof reply);
        } else {
            set(request, sizeof request, rand_r(&random) % KEYS);
            ask(fd, request, "STORED\r\n", reply, sizeof reply);
        }
    }
    close(fd);
    return done;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: load PORT CONNECTIONS SECONDS\n");
        return 2;
    }
    port = atoi(argv[1]);
    int clients = atoi(argv[2]);
    char request[512], reply[64];
    int fd = dial();
    for (unsigned key = 0; key < KEYS; key++) {
        set(request, sizeof request, key);
        ask(fd, request, "STORED\r\n", reply, sizeof reply);
    }
    close(fd);
    end = time(NULL) + atoi(argv[3]);
    pthread_t *threads = calloc((size_t)clients, sizeof *threads);
    for (int i = 0; i < clients; i++)
        pthread_create(&threads[i], NULL, client, (void *)(size_t)(i + 1));
    size_t all = 0;
    for (int i = 0; i < clients; i++) {
        void *done;
        pthread_join(threads[i], &done);
        all += *(size_t *)done;
    }
    printf("%zu requests\n", all);
    return 0;
}

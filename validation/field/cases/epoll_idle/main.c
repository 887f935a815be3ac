// Two event loops idle in epoll_wait, each with a listening socket that nobody connects to. They
// wait for work, which comes from outside: idle, no lock.
#include "account.h"
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

APART static void serve(int poll) {
    struct epoll_event event;
    epoll_wait(poll, &event, 1, -1);
    STAY;
}
static void *loop(void *with) {
    int server = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct epoll_event event = {.events = EPOLLIN};
    bind(server, (struct sockaddr *)&any, sizeof any);
    listen(server, 16);
    epoll_ctl(poll, EPOLL_CTL_ADD, server, &event);
    for (;;) serve(poll);
    return with;
}

int main(int argc, char **argv) {
    start("loop-0", loop, NULL);
    start("loop-1", loop, NULL);
    run_for(argc, argv);
    puts("truth: idle, no lock");
    quit();
}

// A System V message queue that is full: three processes wait in msgsnd until a fourth takes one of
// their telegrams; it sleeps 5 ms for each in transcribe, and never waits. No lock, and they have
// work.
#include "account.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>

static int queue;
static uint64_t *waited;

APART static void send_telegram(void) {
    struct { long type; char text[512]; } telegram = {1, "stop"};
    uint64_t from = now_ns();
    while (msgsnd(queue, &telegram, sizeof telegram.text, 0)) pause(); // it is gone at the end
    count(waited, now_ns() - from);
}
APART static void transcribe(void) { nap_us(5000); STAY; }
APART static void receive_telegram(void) {
    struct { long type; char text[512]; } telegram;
    while (msgrcv(queue, &telegram, sizeof telegram.text, 0, 0) < 0) pause();
    transcribe();
}

int main(int argc, char **argv) {
    waited = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    queue = msgget(IPC_PRIVATE, 0600);
    for (int i = 0; i < 4; i++) {
        if (fork()) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (i == 0)
            for (;;) receive_telegram();
        for (;;) send_telegram();
    }
    run_for(argc, argv);
    msgctl(queue, IPC_RMID, NULL);
    printf("truth: %.2f of 3 senders wait for room; no lock\n",
           (double)*waited / (double)(now_ns() - started_ns));
    quit();
}

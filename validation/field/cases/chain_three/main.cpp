// index_mutex's holder waits for table_mutex, whose holder waits for disk_mutex, which a flusher
// holds 97%, asleep for 5 ms in flush_pages. Only disk_mutex is worth a change. Three threads wait
// for index_mutex, one of them holds it; one waits for disk_mutex with table_mutex.
#include "account.h"
#include <mutex>

static std::mutex index_mutex, table_mutex, disk_mutex;
static account of_index{"index_mutex", 0, 0, 0}, of_table{"table_mutex", 0, 0, 0},
    of_disk{"disk_mutex", 0, 0, 0};

template <typename Code> static void under(std::mutex &mutex, account &account, Code code) {
    uint64_t asked = now_ns();
    std::lock_guard<std::mutex> guard(mutex);
    uint64_t got = now_ns();
    code();
    book(&account, asked, got);
}
APART static void read_page() { under(disk_mutex, of_disk, [] { compute_us(20); }); STAY; }
APART static void find_row() { under(table_mutex, of_table, read_page); STAY; }
APART static void search() { under(index_mutex, of_index, find_row); STAY; }
APART static void flush_pages() { under(disk_mutex, of_disk, [] { nap_us(5000); }); STAY; }

static void *flusher(void *with) {
    for (;;) { flush_pages(); nap_us(150); }
    return with;
}
static void *scanner(void *with) {
    for (;;) { find_row(); nap_us(100); }
    return with;
}
static void *searcher(void *with) {
    for (;;) { search(); nap_us(100); }
    return with;
}

int main(int argc, char **argv) {
    start("flusher", flusher, nullptr);
    start("scanner", scanner, nullptr);
    for (int i = 0; i < 4; i++) start("searcher", searcher, nullptr);
    run_for(argc, argv);
    tell(&of_index);
    tell(&of_table);
    tell(&of_disk);
    quit();
}

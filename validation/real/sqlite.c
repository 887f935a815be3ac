// Threads that share one SQLite connection, as a web service with a global handle does: nine reads
// of a row to one write. SQLite serialises them by the connection's mutex.
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 10000 };

static sqlite3 *database;
static time_t end;

static void check(int result, const char *what) {
    if (result == SQLITE_OK || result == SQLITE_ROW || result == SQLITE_DONE) return;
    fprintf(stderr, "%s: %s\n", what, sqlite3_errmsg(database));
    exit(1);
}

static void *serve(void *seed) {
    unsigned random = (unsigned)(size_t)seed;
    sqlite3_stmt *read, *write;
    check(sqlite3_prepare_v2(database, "SELECT text FROM rows WHERE id BETWEEN ?1 AND ?1 + 20", -1,
                             &read, NULL), "prepare");
    check(sqlite3_prepare_v2(database, "UPDATE rows SET text = hex(randomblob(20)) WHERE id = ?1", -1,
                             &write, NULL), "prepare");
    size_t *done = calloc(1, sizeof *done);
    while (time(NULL) < end) {
        sqlite3_stmt *statement = rand_r(&random) % 10 ? read : write;
        sqlite3_bind_int(statement, 1, rand_r(&random) % ROWS);
        while (sqlite3_step(statement) == SQLITE_ROW) {
        }
        sqlite3_reset(statement);
        ++*done;
    }
    sqlite3_finalize(read);
    sqlite3_finalize(write);
    return done;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: sqlite FILE THREADS SECONDS\n");
        return 2;
    }
    int threads = atoi(argv[2]);
    check(sqlite3_open_v2(argv[1], &database,
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL),
          argv[1]);
    check(sqlite3_exec(database,
                       "CREATE TABLE rows (id INTEGER PRIMARY KEY, text);"
                       "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000)"
                       "INSERT INTO rows SELECT i, hex(randomblob(20)) FROM n",
                       NULL, NULL, NULL),
          "create");
    end = time(NULL) + atoi(argv[3]);
    pthread_t *workers = calloc((size_t)threads, sizeof *workers);
    for (int i = 0; i < threads; i++)
        pthread_create(&workers[i], NULL, serve, (void *)(size_t)(i + 1));
    size_t all = 0;
    for (int i = 0; i < threads; i++) {
        void *done;
        pthread_join(workers[i], &done);
        all += *(size_t *)done;
    }
    printf("%zu statements\n", all);
    return 0;
}

"""Four processes write to one database of SQLite: one has its lock, asleep 30 ms in lookup_price
between BEGIN IMMEDIATE and COMMIT, and the others poll for it in SQLite's busy handler, which
sleeps 1 to 100 ms a time. No disk (synchronous=OFF), no work to wait for. Each tells its own
waiting.
"""

import os
import sqlite3
import sys
import time

seconds = float(sys.argv[1])
end = time.monotonic() + seconds


def lookup_price(item):
    time.sleep(0.030)
    return item * 3


def place_order(orders, item):
    asked = time.monotonic()
    orders.execute("BEGIN IMMEDIATE")
    waited = time.monotonic() - asked
    orders.execute("INSERT INTO orders VALUES (?, ?)", (item, lookup_price(item)))
    orders.execute("COMMIT")
    return waited


def intake():
    orders = sqlite3.connect("orders.db", timeout=30, isolation_level=None)
    orders.execute("PRAGMA synchronous=OFF")
    waited, item = 0.0, 0
    while time.monotonic() < end:
        waited += place_order(orders, item)
        item += 1
        time.sleep(0.005)
    print(f"truth: one of four waited {waited / seconds:.0%} of its time, {item} orders")


with sqlite3.connect("orders.db") as made:
    made.execute("CREATE TABLE IF NOT EXISTS orders (item INTEGER, price INTEGER)")
made.close()
for _ in range(4):
    if os.fork() == 0:
        intake()
        sys.stdout.flush()
        os._exit(0)
for _ in range(4):
    os.wait()

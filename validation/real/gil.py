"""Threads that compute in Python: one of them at a time."""

import sys
import threading
import time


def compute(end):
    total = 0
    while time.monotonic() < end:
        for number in range(10_000):
            total += number * number % 7


end = time.monotonic() + float(sys.argv[2])
threads = [threading.Thread(target=compute, args=(end,)) for _ in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

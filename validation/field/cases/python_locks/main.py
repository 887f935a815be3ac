"""Locks of Python, by the second argument.

abba: writer holds index and waits for store, reader the other way round: a deadlock. Two more wait.
semaphore: a threading.Semaphore(1), made of a Condition, is a lock: 3 of 4 threads wait for
    the fourth, which sleeps 5 ms. They do not wait for work.
processes: a multiprocessing.Lock is held 99%, asleep; the profiled process and two others wait
    for it in turn. It does not wait for work.
children: three threads wait for programs that they start (sleep 0.3), with no lock.
"""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

seconds, what = float(sys.argv[1]), sys.argv[2]
index, store, licence = threading.Lock(), threading.Lock(), threading.Semaphore(1)
waited = [0.0]


def both(first, second):
    with first:
        time.sleep(0.1)
        with second:
            print("not reached")


def use(lock, hold):
    while True:
        asked = time.monotonic()
        with lock:
            waited[0] += time.monotonic() - asked
            time.sleep(hold)
        time.sleep(0.0005)


def one_process(lock):
    begun = time.monotonic()
    threading.Thread(target=use, args=(lock, 0.005), daemon=True).start()
    time.sleep(seconds)
    print(f"truth: waits {waited[0] / (time.monotonic() - begun):.0%} of the time", flush=True)


def run_children():
    while True:
        subprocess.run(["sleep", "0.3"], check=False)


def begin(name, code, *arguments):
    threading.Thread(name=name, target=code, args=arguments, daemon=True).start()


begun = time.monotonic()
if what == "abba":
    begin("writer", both, index, store)
    begin("reader", both, store, index)
    time.sleep(0.2)
    begin("late", use, index, 0)
    begin("late", use, store, 0)
    time.sleep(seconds)
    print("truth: writer and reader are deadlocked")
elif what == "semaphore":
    for _ in range(4):
        begin("user", use, licence, 0.005)
    time.sleep(seconds)
    print(f"truth: {waited[0] / (time.monotonic() - begun):.2f} threads wait for the semaphore")
elif what == "processes":
    lock = multiprocessing.Lock()
    process = multiprocessing.Process
    others = [process(target=one_process, args=(lock,), daemon=True) for _ in range(2)]
    for other in others:
        other.start()
    one_process(lock)
    for other in others:
        other.kill()
else:
    for _ in range(3):
        begin("parent", run_children)
    time.sleep(seconds)
    print("truth: three threads wait for children, no lock")
sys.stdout.flush()
os._exit(0)

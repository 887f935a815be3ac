"""Three threads use a lock now and then; a signal stops the program before it is profiled."""

import os
import sys
import threading
import time

print_lock = threading.Lock()


def print_now_and_then():
    while True:
        with print_lock:
            time.sleep(0.05)
        time.sleep(0.01)


for _ in range(3):
    threading.Thread(target=print_now_and_then, daemon=True).start()
time.sleep(float(sys.argv[1]))
print("truth: stopped while it was profiled")
sys.stdout.flush()
os._exit(0)

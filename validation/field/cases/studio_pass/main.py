"""A pass made of a Condition, with room for one, is a lock: the band that has it sleeps 20 ms in
record_take, and does not hold the Condition's lock meanwhile. 5 to 6 of 7 threads wait in obtain.
"""

import os
import sys
import threading
import time


class StudioPass:
    def __init__(self, passes):
        self.returned = threading.Condition(threading.Lock())
        self.free = passes

    def obtain(self):
        with self.returned:
            while self.free == 0:
                self.returned.wait()
            self.free -= 1

    def hand_back(self):
        with self.returned:
            self.free += 1
            self.returned.notify()


room = StudioPass(1)
waited, held = [0.0] * 7, [0.0] * 7


def record_take():
    time.sleep(0.020)


def band(number):
    while True:
        asked = time.monotonic()
        room.obtain()
        got = time.monotonic()
        waited[number] += got - asked
        record_take()
        held[number] += time.monotonic() - got
        room.hand_back()
        time.sleep(0.010)


begun = time.monotonic()
for one in range(7):
    threading.Thread(name="band", target=band, args=(one,), daemon=True).start()
time.sleep(float(sys.argv[1]))
passed = time.monotonic() - begun
print(f"truth: room held {sum(held) / passed:.0%}, queue {sum(waited) / passed:.2f}", flush=True)
os._exit(0)

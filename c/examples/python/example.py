# SPDX-License-Identifier: Apache-2.0
"""Threads of Python that wait for events, a semaphore and a pipe. Ends with 0 if all is as it should be."""

import os
import threading
import time

import tocsin

job, done, permits = tocsin.AutoEvent(), tocsin.AutoEvent(), tocsin.Semaphore(2)
read_end, write_end = os.pipe()
seen = []


def worker():
    for _ in range(3):
        seen.append(tocsin.wait_any(job, permits, tocsin.Readable(read_end)))
        if seen[-1] == 2:
            os.read(read_end, 1)  # a wait does not take a descriptor
        done.set()


thread = threading.Thread(target=worker)
assert permits.acquire(2)
thread.start()
for wake in (lambda: os.write(write_end, b"x"), permits.release, job.set):
    wake()
    assert done.wait(60)
thread.join()
assert seen == [2, 1, 0], seen

began = time.monotonic()
assert not tocsin.AutoEvent().wait(0.01) and time.monotonic() - began >= 0.01
try:
    permits.release(2**30)
except tocsin.Error as error:
    assert "tocsin_semaphore_release" in str(error)
else:
    raise AssertionError("nobody refused too many permits")
print("all well")

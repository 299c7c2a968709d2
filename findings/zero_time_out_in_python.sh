#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A semaphore is free, and a coroutine acquires it with a time-out of 0. With some of Python's libraries this is a try.
# With others it fails without a look at the semaphore.
#   1. asyncio.wait_for(acquire(), 0) fails; the coroutine isn't even begun. asyncio.timeout(0) around the same call
#      gets the permit, and so does asyncio.timeout(-1). The same is true of the get() of a queue with an item, and of
#      the wait for a set event. Why: wait_for() cancels at once if the time isn't positive. timeout() cancels in the
#      loop's next turn, and an acquire that doesn't have to wait is done in this one.
#   2. trio 0.35.0 and anyio 4.16.0, on both of its backends, fail, also if the event is set; anyio's fast_acquire
#      doesn't change it. Why: each of their calls looks whether it is cancelled before it does anything.
#   3. The time-outs of gevent 26.9.0 and async-timeout 5.0.1 get the permit, and so do the calls of gevent and
#      Tornado 6.6.1 that take a time-out themselves.
# Guessed before: that a time-out of 0 is a try that gets what is free, everywhere, as with threading.
# Seen with CPython 3.11.7, 3.12.1 and 3.13.0; wait_for() with 3.9.18 and 3.10.13, too.
# Needs Python 3.11 or later with venv, and a network. It runs the interpreter `python3`, or the one that is given.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${1:-python3}" -m venv "$folder/python"
cd "$folder"
python/bin/pip install --quiet --disable-pip-version-check \
    trio==0.35.0 anyio==4.16.0 gevent==26.9.0 async-timeout==5.0.1 tornado==6.6.1
python/bin/python - > seen.txt <<'PROGRAM'
import asyncio
import datetime
import threading

import anyio
import async_timeout
import gevent.lock
import tornado.locks
import trio


async def tell(name, attempt):
    try:
        await attempt()
        print(f"{name}: gets it")
    except Exception as refusal:
        print(f"{name}: {type(refusal).__name__}")


async def under(limit, wait):
    async with limit:
        await wait()


async def under_plain(limit, wait):
    with limit:
        await wait()


def free(module):
    return module.Semaphore(1).acquire


def is_set(module):
    event = module.Event()
    event.set()
    return event.wait


async def within_asyncio():
    queue = asyncio.Queue()
    queue.put_nowait(1)
    begun = []

    async def begin():
        begun.append(1)

    await tell("asyncio.wait_for(0), semaphore", lambda: asyncio.wait_for(free(asyncio)(), 0))
    await tell("asyncio.wait_for(0), queue", lambda: asyncio.wait_for(queue.get(), 0))
    await tell("asyncio.wait_for(0), event", lambda: asyncio.wait_for(is_set(asyncio)(), 0))
    await tell("asyncio.wait_for(0), any coroutine", lambda: asyncio.wait_for(begin(), 0))
    print("begun:", len(begun))
    await tell("asyncio.timeout(0), semaphore", lambda: under(asyncio.timeout(0), free(asyncio)))
    await tell("asyncio.timeout(0), queue", lambda: under(asyncio.timeout(0), queue.get))
    await tell("asyncio.timeout(0), event", lambda: under(asyncio.timeout(0), is_set(asyncio)))
    await tell("asyncio.timeout(-1), semaphore", lambda: under(asyncio.timeout(-1), free(asyncio)))
    await tell("async_timeout.timeout(0)", lambda: under(async_timeout.timeout(0), free(asyncio)))
    await tell("tornado", lambda: tornado.locks.Semaphore(1).acquire(timeout=datetime.timedelta(0)))


async def within_anyio():
    await tell("anyio, semaphore", lambda: under_plain(anyio.fail_after(0), free(anyio)))
    fast = anyio.Semaphore(1, fast_acquire=True)
    await tell("anyio, semaphore with fast_acquire", lambda: under_plain(anyio.fail_after(0), fast.acquire))
    await tell("anyio, event", lambda: under_plain(anyio.fail_after(0), is_set(anyio)))


async def within_trio():
    await tell("trio, semaphore", lambda: under_plain(trio.fail_after(0), free(trio)))
    await tell("trio, event", lambda: under_plain(trio.fail_after(0), is_set(trio)))


asyncio.run(within_asyncio())
anyio.run(within_anyio, backend="asyncio")
anyio.run(within_anyio, backend="trio")
trio.run(within_trio)
print("gevent:", gevent.lock.Semaphore(1).acquire(timeout=0))
with gevent.Timeout(0):
    print("gevent.Timeout(0):", gevent.lock.Semaphore(1).acquire())
print("threading:", threading.Semaphore(1).acquire(timeout=0))
PROGRAM
cat seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
asyncio.wait_for(0), semaphore: TimeoutError
asyncio.wait_for(0), queue: TimeoutError
asyncio.wait_for(0), event: TimeoutError
asyncio.wait_for(0), any coroutine: TimeoutError
begun: 0
asyncio.timeout(0), semaphore: gets it
asyncio.timeout(0), queue: gets it
asyncio.timeout(0), event: gets it
asyncio.timeout(-1), semaphore: gets it
async_timeout.timeout(0): gets it
tornado: gets it
anyio, semaphore: TimeoutError
anyio, semaphore with fast_acquire: TimeoutError
anyio, event: TimeoutError
anyio, semaphore: TimeoutError
anyio, semaphore with fast_acquire: TimeoutError
anyio, event: TimeoutError
trio, semaphore: TooSlowError
trio, event: TooSlowError
gevent: True
gevent.Timeout(0): True
threading: True
TEXT

# SPDX-License-Identifier: Apache-2.0
"""Waits of coroutines in asyncio. Imported when a coroutine first waits, so that `import tocsin` imports no asyncio."""

import asyncio
import weakref

from tocsin import _core

_bridges = weakref.WeakKeyDictionary()  # loop -> its bridge


class _Reader:
    """What the loop calls when waits have ended. Only the loop refers to it, so it goes when the loop is closed."""

    __slots__ = ("_bridge",)

    def __init__(self, bridge):
        self._bridge = bridge

    def __call__(self):
        _core._run_bridge(self._bridge)

    def __del__(self):
        _core._close_bridge(self._bridge)


def _bridge_of(loop):
    bridge = _bridges.get(loop)
    if bridge is None:
        bridge = _core._make_bridge()
        loop.add_reader(bridge.fileno(), _Reader(bridge))
        _bridges[loop] = bridge
    return bridge


def _delay(loop, timeout, deadline):
    """When the wait ends, on the loop's clock; None for never."""
    if deadline is not None:
        if timeout is not None:
            raise TypeError("give a timeout or a deadline, not both")
        if not isinstance(deadline, _core.Deadline):
            raise TypeError(f"deadline must be made by tocsin.monotonic_deadline(), not {type(deadline).__name__}")
    elif timeout is not None:
        deadline = _core.monotonic_deadline(timeout)
    return deadline and deadline.remaining()


async def _wait(sources, every, timeout, deadline):
    loop = asyncio.get_running_loop()
    name = "wait_all_async" if every else "wait_async"
    if not sources:
        raise ValueError(f"{name}() needs something to wait for; to sleep, use asyncio.sleep()")
    delay = _delay(loop, timeout, deadline)
    if every:
        if _core.wait_all(*sources, timeout=0):
            return 0
    else:
        index = _core.wait_any(*sources, timeout=0)
        if index is not None:
            return index
    if delay is not None and delay <= 0:
        await asyncio.sleep(0)
        return None
    future = loop.create_future()
    bridge = _bridge_of(loop)
    wait = _core._begin_async(bridge, future, sources, every)
    timer = None if delay is None else loop.call_later(delay, wait.cancel)
    try:
        return await future
    except BaseException:
        # Cancelled, or the coroutine is closed. What the wait has taken goes to somebody else.
        wait.cancel()
        if future.done() and not future.cancelled():
            _core._give_back(wait)
        else:
            wait.forget()
        raise
    finally:
        if timer is not None:
            timer.cancel()


async def wait_one(source):
    """What `await event` does."""
    await _wait((source,), False, None, None)
    return True


async def wait_any(sources, timeout, deadline):
    """What wait_async() does."""
    return await _wait(sources, False, timeout, deadline)


async def wait_all(sources, timeout, deadline):
    """What wait_all_async() does."""
    return await _wait(sources, True, timeout, deadline) is not None

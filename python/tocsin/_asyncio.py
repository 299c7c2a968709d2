# SPDX-License-Identifier: Apache-2.0
"""Waits of coroutines in asyncio. Imported when one first waits, so that `import tocsin` imports no asyncio."""

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


def _undo(begun, future):
    """The wait was cancelled, or its coroutine is closed. What the wait has taken goes to somebody else."""
    begun.cancel()
    if future.done() and not future.cancelled():
        _core._give_back(begun)
    else:
        begun.forget()


def wait_one(source):
    """What `await event` iterates over. A plain generator is the smallest that a waiting task can keep."""
    loop = asyncio.get_running_loop()
    if _core.wait_any(source, timeout=0) is not None:
        return True
    future = loop.create_future()
    begun = _core._begin_async(_bridge_of(loop), future, (source,), False)
    try:
        yield from future
    except BaseException:
        _undo(begun, future)
        raise
    return True


async def wait(sources, every, delay, try_now):
    """What the sources give, at most `delay` seconds: the index that _core has, or None."""
    loop = asyncio.get_running_loop()
    index = try_now(sources, every)
    if index is not None:
        return index
    if delay is not None and delay <= 0:
        await asyncio.sleep(0)
        return None
    future = loop.create_future()
    begun = _core._begin_async(_bridge_of(loop), future, sources, every)
    timer = None if delay is None else loop.call_later(delay, begun.cancel)
    try:
        return await future
    except BaseException:
        _undo(begun, future)
        raise
    finally:
        if timer is not None:
            timer.cancel()

# SPDX-License-Identifier: Apache-2.0
"""Waits of coroutines: in asyncio, and in trio. The module of a loop is imported when one of its coroutines waits."""

import sys

from tocsin import _core


def _delay(timeout, deadline):
    """The seconds until the wait ends; None for never."""
    if deadline is not None:
        if timeout is not None:
            raise TypeError("give a timeout or a deadline, not both")
        if not isinstance(deadline, _core.Deadline):
            raise TypeError(f"deadline must be made by tocsin.monotonic_deadline(), not {type(deadline).__name__}")
    elif timeout is not None:
        deadline = _core.monotonic_deadline(timeout)
    return deadline and deadline.remaining()


def _try(sources, every):
    """What a wait returns that need not sleep; None if it has to."""
    if every:
        return 0 if _core.wait_all(*sources, timeout=0) else None
    return _core.wait_any(*sources, timeout=0)


def _runs_in_trio():
    lowlevel = sys.modules.get("trio.lowlevel")
    if lowlevel is None:
        return False
    try:
        lowlevel.current_task()
    except RuntimeError:
        return False
    return True


def _begin(sources, every, timeout, deadline):
    """The coroutine that waits."""
    if not sources:
        name = "wait_all_async" if every else "wait_async"
        raise ValueError(f"{name}() needs something to wait for; to sleep, use the sleep() of asyncio or trio")
    delay = _delay(timeout, deadline)
    if _runs_in_trio():
        from tocsin import _trio as loop
    else:
        from tocsin import _asyncio as loop
    return loop.wait(sources, every, delay, _try)


def wait_one(source):
    """The iterator of `await event`."""
    if _runs_in_trio():
        from tocsin import _trio as loop
    else:
        from tocsin import _asyncio as loop
    return loop.wait_one(source)


async def wait_any(sources, timeout, deadline):
    """What wait_async() does."""
    return await _begin(sources, False, timeout, deadline)


async def wait_all(sources, timeout, deadline):
    """What wait_all_async() does."""
    return await _begin(sources, True, timeout, deadline) is not None

# SPDX-License-Identifier: Apache-2.0
"""Waits of tasks in trio. Imported when a task of trio first waits.

A system task of each run waits for the bridge's descriptor, and reschedules the tasks whose waits have ended. A wait
that is cancelled decides with the core who comes first. If the wait has been handed something, it returns that, and the
task meets its cancellation at its next checkpoint. So nothing is lost, and nothing has to be given back."""

import outcome
import trio

from tocsin import _core

_bridges = trio.lowlevel.RunVar("tocsin")


class _Future:
    """What a bridge tells when a wait has ended."""

    __slots__ = ("_is_done", "_task")

    def __init__(self, task):
        self._task = task
        self._is_done = False

    def done(self):
        return self._is_done

    def cancel(self):
        self._is_done = True

    def set_result(self, index):
        self._is_done = True
        trio.lowlevel.reschedule(self._task, outcome.Value(index))


async def _serve(bridge):
    try:
        while True:
            await trio.lowlevel.wait_readable(bridge.fileno())
            _core._run_bridge(bridge)
    finally:
        trio.lowlevel.notify_closing(bridge.fileno())
        _core._close_bridge(bridge)


def _bridge_of_this_run():
    try:
        return _bridges.get()
    except LookupError:
        bridge = _core._make_bridge()
        _bridges.set(bridge)
        trio.lowlevel.spawn_system_task(_serve, bridge, name="tocsin")
        return bridge


async def wait(sources, every, delay, try_now):
    """What the sources give, at most `delay` seconds: the index that _core has, or None."""
    await trio.lowlevel.checkpoint_if_cancelled()
    index = try_now(sources, every)
    if index is not None or (delay is not None and delay <= 0):
        await trio.lowlevel.cancel_shielded_checkpoint()
        return index
    future = _Future(trio.lowlevel.current_task())
    begun = _core._begin_async(_bridge_of_this_run(), future, sources, every)

    def abort(_):
        if not begun.cancel():
            return trio.lowlevel.Abort.FAILED  # the bridge is about to reschedule the task
        future.cancel()
        return trio.lowlevel.Abort.SUCCEEDED

    if delay is None:
        return await trio.lowlevel.wait_task_rescheduled(abort)
    with trio.move_on_after(delay):
        return await trio.lowlevel.wait_task_rescheduled(abort)
    return None


async def _take(source):
    await wait((source,), False, None, lambda *_: _core.wait_any(source, timeout=0))
    return True


def wait_one(source):
    """What `await event` iterates over."""
    return _take(source).__await__()

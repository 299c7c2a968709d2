# SPDX-License-Identifier: Apache-2.0
"""Pickling what processes share. Imported when such an object is first pickled or unpickled."""

import os
from multiprocessing import context, reduction

from tocsin import _core


def _open(name):
    return _core.SharedMemory.open(name)


def _map(inherited):
    descriptor = inherited.detach()
    try:
        return _core.SharedMemory.map(descriptor)
    finally:
        os.close(descriptor)


def _attach(kind, buffer, offset):
    return kind(buffer=buffer, offset=offset)


def reduce_memory(memory):
    """What SharedMemory.__reduce__ does."""
    if memory.name is not None:
        return _open, (memory.name,)
    if context.get_spawning_popen() is None:
        raise RuntimeError(
            "shared memory without a name is pickled only while multiprocessing starts a process: give the object to "
            "the Process as an argument, or put it into a SharedMemory with a name"
        )
    return _map, (reduction.DupFd(memory.descriptor),)


def reduce_object(one):
    """What the __reduce__ of an object in shared memory does."""
    kind = type(one)
    memory = type(one.buffer)
    if memory.__module__ in ("builtins", "mmap"):
        raise TypeError(
            f"cannot pickle a {kind.__name__} in a {memory.__name__}, which belongs to one process: give it a "
            "SharedMemory as its buffer, with an offset"
        )
    return _attach, (kind, one.buffer, one.offset)

# SPDX-License-Identifier: Apache-2.0
"""patch_threading(): for programs that want these types in place of those of threading, and for CPython's own tests."""

import threading

from tocsin import _conditions, _core

NAMES = {
    "Lock": _core.Lock,
    "RLock": _core.RLock,
    "Event": _core.Event,
    "Condition": _conditions.Condition,
    "Semaphore": _core.Semaphore,
    "BoundedSemaphore": _core.BoundedSemaphore,
    "Barrier": _conditions.Barrier,
}


def patch_threading(*names):
    """Put these types of tocsin into threading, under the same names: all that there are, if none is named.

    Call it before anything is imported that takes a type out of threading: what was imported or made before keeps what
    it has. Returns nothing. Calling it again changes nothing."""
    for name in names:
        if name not in NAMES:
            raise ValueError(f"patch_threading() knows {', '.join(NAMES)}, not {name!r}")
    for name in names or NAMES:
        setattr(threading, name, NAMES[name])
    if not names or "Lock" in names:
        threading._allocate_lock = _core.Lock
    if not names or "RLock" in names:
        threading._CRLock = _core.RLock

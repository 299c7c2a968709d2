# SPDX-License-Identifier: Apache-2.0
"""A part of tocsin for Python, over ctypes. A call that waits releases the interpreter's lock.

The shared library is the one that TOCSIN_C_LIBRARY names, or what the system finds as libtocsin-c.so.1.
"""

import ctypes
import os
from ctypes import POINTER, Structure, Union, byref, c_bool, c_char_p, c_int, c_int64, c_size_t, c_ssize_t, c_uint32, \
    c_uint8, c_void_p

OK, TIMED_OUT, STOPPED, DIFFERED, NOTHING_DONE = range(5)
API_VERSION = 1
NEVER, FROM_NOW, STEADY, SYSTEM = range(4)
SOURCE_AUTO_EVENT, SOURCE_SEMAPHORE, SOURCE_DESCRIPTOR = 2, 3, 7
READABLE = 1


class Error(Exception):
    pass


class _Deadline(Structure):
    _fields_ = [("clock", c_int), ("nanoseconds", c_int64)]


class _Limits(Structure):
    _fields_ = [("until", _Deadline), ("stop", c_void_p), ("spin_mode", c_int), ("spin_nanoseconds", c_uint32),
                ("order", c_int), ("stop_first", c_bool)]


class _Of(Union):
    _fields_ = [("object", c_void_p), ("descriptor", c_ssize_t), ("deadline", _Deadline)]


class _Source(Structure):
    _fields_ = [("kind", c_int), ("asked", c_uint32), ("of", _Of)]


class _AnyResult(Structure):
    _fields_ = [("index", c_size_t), ("found", c_uint32)]


_library = ctypes.CDLL(os.environ.get("TOCSIN_C_LIBRARY", "libtocsin-c.so.1"))


def _function(name, *arguments, result=c_int):
    function = getattr(_library, f"tocsin_{name}")
    function.argtypes, function.restype = arguments, result
    return function


_api_version = _function("api_version", result=c_uint32)
_last_error = _function("last_error", result=c_char_p)
_wait_any = _function("wait_any", POINTER(_Source), c_size_t, POINTER(_Limits), POINTER(_AnyResult))

if _api_version() != API_VERSION:
    raise ImportError(f"the library has version {_api_version()} of the interface, this module wants {API_VERSION}")


def _checked(status):
    if status < 0:
        raise Error(_last_error().decode())
    return status


def _within(seconds):
    """Limits that end so many seconds from now; None: never."""
    return None if seconds is None else byref(_Limits(_Deadline(FROM_NOW, int(seconds * 1e9))))


class AutoEvent:
    """A token: each set releases one thread."""

    _init = _function("auto_event_init", c_void_p, c_bool)
    _set = _function("auto_event_set", c_void_p)
    _wait = _function("auto_event_wait", c_void_p, POINTER(_Limits))

    def __init__(self, initially_set=False):
        self._memory = c_uint8()  # a Python object does not move
        _checked(self._init(byref(self._memory), initially_set))

    def set(self):
        _checked(self._set(byref(self._memory)))

    def wait(self, seconds=None):
        """Whether the token was taken before the time had passed."""
        return _checked(self._wait(byref(self._memory), _within(seconds))) == OK

    def _source(self):
        return _Source(SOURCE_AUTO_EVENT, 0, _Of(object=ctypes.addressof(self._memory)))


class Semaphore:
    _init = _function("semaphore_init", c_void_p, c_uint32)
    _release = _function("semaphore_release", c_void_p, c_uint32)
    _acquire = _function("semaphore_acquire", c_void_p, c_uint32, POINTER(_Limits))

    def __init__(self, permits=0):
        self._memory = c_uint32()
        _checked(self._init(byref(self._memory), permits))

    def release(self, permits=1):
        _checked(self._release(byref(self._memory), permits))

    def acquire(self, permits=1, seconds=None):
        return _checked(self._acquire(byref(self._memory), permits, _within(seconds))) == OK

    def _source(self):
        return _Source(SOURCE_SEMAPHORE, 0, _Of(object=ctypes.addressof(self._memory)))


class Readable:
    """A descriptor as a source, for a number or for anything that has fileno()."""

    def __init__(self, descriptor):
        self._descriptor = descriptor if isinstance(descriptor, int) else descriptor.fileno()

    def _source(self):
        return _Source(SOURCE_DESCRIPTOR, READABLE, _Of(descriptor=self._descriptor))


def wait_any(*sources, seconds=None):
    """The index of the first source that was ready, which is taken; None if the time passed first."""
    array = (_Source * len(sources))(*(each._source() for each in sources))
    result = _AnyResult()
    ended = _checked(_wait_any(array, len(sources), _within(seconds), byref(result)))
    return result.index if ended == OK else None

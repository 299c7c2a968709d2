#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A process has a file lock. Without its own release, others find it free:
#   1. portalocker 4.4.2 and zc.lockfile 4.0, if a child that was forked meanwhile releases its copy of the lock object,
#      for example at the end of a `with` in which it was forked. Why: parent and child share one lock of flock(), and
#      releasing means to unlock it, not only to close the child's descriptor. If the child just ends, the parent keeps
#      its lock.
#   2. fasteners 0.20, if the process opens and closes the lock file elsewhere, only to read it. A second lock object of
#      the same process gets the lock as well, and its release frees it. Why: a lock of lockf() belongs to the process,
#      and closing any descriptor of the file drops it.
# Guessed before: that a lock is held until who acquired it releases it, as with filelock 4.3.1 in all cases.
# Seen with CPython 3.11.7. Needs python3 with venv, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check filelock==4.3.1 portalocker==4.4.2 fasteners==0.20 \
    zc.lockfile==4.0 setuptools==80.9.0
cat > locks.py <<'PROGRAM'
import sys

import fasteners
import filelock
import portalocker
import zc.lockfile


class Zc:
    def __init__(self, path):
        self.path = path

    def acquire(self):
        self.lock = zc.lockfile.LockFile(self.path)

    def release(self):
        self.lock.close()


MAKERS = {
    "filelock": lambda path: filelock.FileLock(path, timeout=0),
    "portalocker": lambda path: portalocker.Lock(path, timeout=0, fail_when_locked=True),
    "zc.lockfile": Zc,
    "fasteners": fasteners.InterProcessLock,
}


def acquires(lock):
    options = {"blocking": False} if isinstance(lock, fasteners.InterProcessLock) else {}
    try:
        return lock.acquire(**options) is not False
    except (filelock.Timeout, portalocker.exceptions.LockException, zc.lockfile.LockError):
        return False


if __name__ == "__main__":
    print("free" if acquires(MAKERS[sys.argv[1]](sys.argv[2])) else "held")
PROGRAM
cat > seen.py <<'PROGRAM'
import os
import subprocess
import sys

from locks import MAKERS, acquires


def release_in_child(lock, path):
    child = os.fork()
    if child == 0:
        lock.release()
        os._exit(0)
    os.waitpid(child, 0)


def end_child(lock, path):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def read(lock, path):
    open(path).close()


def acquire_again(lock, path):
    other = MAKERS[name](path)
    if acquires(other):
        print(f"{name}: a second object gets the lock, too")
        other.release()


for name, make in MAKERS.items():
    for act in (lambda lock, path: None, end_child, release_in_child, read, acquire_again):
        path = f"{name}.{act.__name__}"
        lock = make(path)
        assert acquires(lock)
        act(lock, path)
        found = subprocess.run([sys.executable, "locks.py", name, path], capture_output=True, text=True).stdout.strip()
        print(f"{name}, {act.__name__.replace('<lambda>', 'nothing')}: {found}")
PROGRAM
python/bin/python -W ignore seen.py | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
filelock, nothing: held
filelock, end_child: held
filelock, release_in_child: held
filelock, read: held
filelock, acquire_again: held
portalocker, nothing: held
portalocker, end_child: held
portalocker, release_in_child: free
portalocker, read: held
portalocker, acquire_again: held
zc.lockfile, nothing: held
zc.lockfile, end_child: held
zc.lockfile, release_in_child: free
zc.lockfile, read: held
zc.lockfile, acquire_again: held
fasteners, nothing: held
fasteners, end_child: held
fasteners, release_in_child: held
fasteners, read: free
fasteners: a second object gets the lock, too
fasteners, acquire_again: free
TEXT

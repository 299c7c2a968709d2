# SPDX-License-Identifier: Apache-2.0
# pyright: strict
"""A worker that serves its queue, its shutdown and a socket in one wait.

With threading, it would need a thread for each of the three, or look at each of them now and then."""

from __future__ import annotations

import socket
import threading

import tocsin


class Worker:
    def __init__(self, commands: socket.socket) -> None:
        self.jobs: tocsin.Queue[int] = tocsin.Queue()
        self.shutdown = tocsin.Event()
        self.log: list[str] = []
        self._commands = commands
        self.thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        while True:
            ready = tocsin.wait_any(self.shutdown, self._commands, self.jobs, timeout=60)
            if ready == 0:
                return
            if ready == 1:
                self.log.append(f"command {self._commands.recv(100).decode()}")
            elif ready == 2:
                self.log.append(f"job {self.jobs.get()}")
            else:
                self.log.append("idle for a minute")


def main() -> list[str]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        worker = Worker(theirs)
        worker.thread.start()
        worker.jobs.put(1)
        ours.send(b"reload")
        worker.jobs.put(2)
        while len(worker.log) < 3 and worker.thread.is_alive():
            tocsin.wait_any(worker.thread, timeout=0.01)
        worker.shutdown.set()
        tocsin.wait_any(worker.thread, timeout=60)
        worker.thread.join()
    return worker.log


if __name__ == "__main__":
    print("\n".join(main()))

# SPDX-License-Identifier: Apache-2.0
# pyright: strict
"""A supervisor of processes: it starts again what has failed, and sees a stop at once. It waits for the ends of all
processes and for the stop in one wait, without polling."""

from __future__ import annotations

import subprocess
import sys
import threading

import tocsin


class Supervisor:
    def __init__(self, programs: dict[str, str], restarts: int) -> None:
        self.stop = tocsin.Event()
        self.log: list[str] = []
        self._programs = programs
        self._left = {name: restarts for name in programs}

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-S", "-c", self._programs[name]])

    def run(self) -> None:
        running = {name: self._start(name) for name in self._programs}
        while running:
            names = list(running)
            ready = tocsin.wait_any(self.stop, *(running[name] for name in names))
            if not ready:
                for process in running.values():
                    process.kill()
                    process.wait()
                self.log.append(f"stopped {' '.join(running)}")
                return
            name = names[ready - 1]
            code = running.pop(name).wait()
            self.log.append(f"{name} ended with {code}")
            if code != 0 and self._left[name] > 0:
                self._left[name] -= 1
                running[name] = self._start(name)


def main() -> list[str]:
    supervisor = Supervisor({"fails": "raise SystemExit(3)", "serves": "import sys, time; time.sleep(3600)"}, 1)
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    while len(supervisor.log) < 2 and thread.is_alive():
        tocsin.wait_any(thread, timeout=0.01)
    supervisor.stop.set()
    thread.join()
    return supervisor.log


if __name__ == "__main__":
    print("\n".join(main()))

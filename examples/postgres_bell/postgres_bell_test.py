#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""postgres_bell against a real server, started for this test in a temporary folder, on a socket in that folder.

Exit code 77, with a message, where PostgreSQL is not installed.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

PROGRAM = sys.argv[1]
PATIENCE = 60
SKIPPED = 77


def find_server():
    """The folder of the newest server's programs, or None."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    return folders[-1].parent if folders else None


def unprivileged():
    """The prefix that runs a command as a user whom the server accepts (it refuses root), or None."""
    if os.geteuid() != 0:
        return []
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return ["setpriv", f"--reuid={name}", "--clear-groups", "--"]
    return None


def run(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=PATIENCE)


class Server:
    """A server that lives in one temporary folder and is removed with it."""

    def __init__(self, programs, run_as):
        self.folder = tempfile.TemporaryDirectory(prefix="bell-")
        if run_as:
            shutil.chown(self.folder.name, run_as[1].partition("=")[2])
        self.control = [*run_as, programs / "pg_ctl", "--pgdata", f"{self.folder.name}/data"]
        self.psql = [programs / "psql", "--no-psqlrc", "--quiet", "--dbname", self.connection()]
        run(*run_as, programs / "initdb", "--pgdata", f"{self.folder.name}/data", "--auth=trust",
            "--username=bell", "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder.name} -c fsync=off"
        run(*self.control, "--wait", "--log", f"{self.folder.name}/log", "--options", options, "start")

    def connection(self):
        return f"host={self.folder.name} user=bell dbname=postgres"

    def notify(self, channel, payload):
        run(*self.psql, "--command", f"NOTIFY {channel}, '{payload}'")

    def stop(self):
        run(*self.control, "--wait", "--mode", "immediate", "stop")
        self.folder.cleanup()


def expect(process, line):
    seen = process.stdout.readline().rstrip("\n")
    if seen != line:
        sys.exit(f"expected `{line}`, got `{seen}`")


def main():
    programs, run_as = find_server(), unprivileged()
    if programs is None or run_as is None:
        print("skipped: PostgreSQL is not installed (in Debian: postgresql)")
        return SKIPPED
    server = Server(programs, run_as)
    process = subprocess.Popen([PROGRAM, server.connection(), "bell"], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    alarm = threading.Timer(PATIENCE, process.kill)
    alarm.start()
    try:
        expect(process, "listening")
        server.notify("bell", "from afar")
        expect(process, "database: from afar")
        print("from here", file=process.stdin, flush=True)
        expect(process, "local: from here")
        server.notify("another", "not for us")
        server.notify("bell", "again")
        expect(process, "database: again")
        process.send_signal(signal.SIGTERM)
        expect(process, "bye")
        return process.wait(PATIENCE)
    finally:
        alarm.cancel()
        process.kill()
        server.stop()


if __name__ == "__main__":
    sys.exit(main())

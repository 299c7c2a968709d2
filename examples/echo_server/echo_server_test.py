#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""echo_server with a thousand connections that talk at once, some of which go away in between; then SIGTERM."""

import re
import resource
import selectors
import signal
import socket
import subprocess
import sys
import threading

PROGRAM = sys.argv[1]
CONNECTIONS = 1000
ROUNDS = 3
PATIENCE = 100


def allow_many_descriptors():
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def talk(clients, round_number):
    """Each client sends its own text and must receive exactly that."""
    wanted = {client: f"{round_number}: {number} ".encode() * (1 + number % 7) for number, client in clients.items()}
    heard = {client: b"" for client in wanted}
    for client, text in wanted.items():
        client.sendall(text)
    with selectors.DefaultSelector() as selector:
        for client in wanted:
            selector.register(client, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(PATIENCE):
                heard[key.fileobj] += key.fileobj.recv(65536)
                if len(heard[key.fileobj]) >= len(wanted[key.fileobj]):
                    selector.unregister(key.fileobj)
    assert heard == wanted, "an echo differs from what was said"


def main():
    allow_many_descriptors()
    process = subprocess.Popen([PROGRAM], text=True, stdout=subprocess.PIPE)
    alarm = threading.Timer(PATIENCE, process.kill)
    alarm.start()
    try:
        port = int(re.fullmatch(r"listening on port (\d+)\n", process.stdout.readline())[1])
        clients = {number: socket.create_connection(("127.0.0.1", port)) for number in range(CONNECTIONS)}
        for round_number in range(ROUNDS):
            talk(clients, round_number)
            for number in [number for number in clients if number % 10 == round_number]:
                clients.pop(number).close()
        process.send_signal(signal.SIGTERM)
        said = process.stdout.readline()
        assert re.fullmatch(rf"bye: {CONNECTIONS} connections, \d+ bytes\n", said), said
        assert process.wait(PATIENCE) == 0, f"exit code {process.returncode}"
        for client in clients.values():
            assert client.recv(1) == b"", "closed by the server"
    finally:
        alarm.cancel()
        process.kill()


if __name__ == "__main__":
    main()

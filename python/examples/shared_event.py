# SPDX-License-Identifier: Apache-2.0
# pyright: strict
"""A coroutine and a thread that share events: no thread of a pool waits for the coroutine's sake."""

from __future__ import annotations

import asyncio
import threading

import tocsin


async def play(rounds: int) -> list[str]:
    ping, pong = tocsin.AutoResetEvent(), tocsin.AutoResetEvent()
    log: list[str] = []

    def answer() -> None:
        for _ in range(rounds):
            ping.wait()
            log.append("thread")
            pong.set()

    thread = threading.Thread(target=answer)
    thread.start()
    for _ in range(rounds):
        log.append("coroutine")
        ping.set()
        await pong
    await tocsin.wait_async(thread)
    return log


def main() -> list[str]:
    return asyncio.run(play(3))


if __name__ == "__main__":
    print(" ".join(main()))

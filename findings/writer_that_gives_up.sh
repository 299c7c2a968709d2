#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A reader has the lock, a writer queues, and a second reader queues behind the writer. The writer is cancelled. In two
# libraries the second reader sleeps on, although nothing is left that it could wait for. A third reader that comes then
# gets the lock at once, ahead of the second. The second gets it only when all readers have released the lock. (It has a
# time-out below. Without one it sleeps on until then.)
# Why: a cancelled wait removes itself from the queue and wakes nobody.
# Guessed before: that the second reader gets the lock when the writer is cancelled, as with async-lock 3.5.0
# (crates.io).
# Seen with aiorwlock 1.5.1 (PyPI) under CPython 3.11.7, and @esfx/async-readerwriterlock 1.0.0-pre.8 (npm) under
# Node 20.20.2.
# Needs python3 with venv, Node, npm, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check aiorwlock==1.5.1
npm install --silent --no-audit --no-fund @esfx/async-readerwriterlock@1.0.0-pre.8 @esfx/async-canceltoken@1.0.0 > npm.log
python/bin/python - > seen.txt <<'PROGRAM'
import asyncio

import aiorwlock


async def main():
    lock = aiorwlock.RWLock()
    await lock.reader.acquire()
    writer = asyncio.create_task(lock.writer.acquire())
    await asyncio.sleep(0.05)

    releases = asyncio.Event(), asyncio.Event()
    entered = []

    async def enter(number):
        async with lock.reader:
            entered.append(number)
            await releases[number - 2].wait()

    readers = [asyncio.create_task(asyncio.wait_for(enter(2), 10))]
    await asyncio.sleep(0.05)
    writer.cancel()
    await asyncio.sleep(0.2)
    print("aiorwlock: after the cancel, readers", entered, "have the lock")
    readers.append(asyncio.create_task(enter(3)))
    await asyncio.sleep(0.2)
    print("aiorwlock: after one more has come:", entered)
    lock.reader.release()
    releases[1].set()
    await asyncio.sleep(0.2)
    print("aiorwlock: after all have released it:", entered)
    releases[0].set()
    await asyncio.gather(*readers)


asyncio.run(main())
PROGRAM
cat > seen.js <<'PROGRAM'
const { AsyncReaderWriterLock } = require("@esfx/async-readerwriterlock");
const { CancelToken } = require("@esfx/async-canceltoken");
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
(async () => {
    const lock = new AsyncReaderWriterLock();
    const first = await lock.read();
    const cancel = CancelToken.source();
    const writer = lock.write(cancel.token).catch(() => "cancelled");
    const entered = [];
    const limit = CancelToken.source();
    setTimeout(() => limit.cancel(), 10000).unref();
    const second = lock.read(limit.token).then((held) => { entered.push(2); return held; });
    await pause(50);
    cancel.cancel();
    await writer;
    await pause(200);
    console.log("esfx: after the cancel, readers", entered, "have the lock");
    const third = await lock.read();
    entered.push(3);
    await pause(200);
    console.log("esfx: after one more has come:", entered);
    first.unlock();
    third.unlock();
    (await second).unlock();
    console.log("esfx: after all have released it:", entered);
})();
PROGRAM
node seen.js >> seen.txt
cat seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
aiorwlock: after the cancel, readers [] have the lock
aiorwlock: after one more has come: [3]
aiorwlock: after all have released it: [3, 2]
esfx: after the cancel, readers [] have the lock
esfx: after one more has come: [ 3 ]
esfx: after all have released it: [ 3, 2 ]
TEXT

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two packages don't keep the limit that was given to a wait.
#   1. async-lock 1.5.0, acquire() of three keys with a time-out of 100 ms, which is documented as the longest time in
#      the queue: the call is served after 240 ms. Why: it takes one key after the other, and each gets 100 ms of its
#      own. A time-out of 0 is none.
#   2. @sapphire/async-queue 1.5.5, wait() with a signal that has been aborted before the call: it queues, takes its
#      turn, and reports success. If the signal is aborted later, it rejects at once. Why: it listens for the abort,
#      which is over, and doesn't look whether the signal is aborted already.
# Guessed before: that (1) fails after 100 ms, and at once if the time-out is 0; that (2) rejects at once, as p-queue
# 9.3.5, p-event 7.1.1 and p-timeout 7.0.2 do.
# Seen with Node 20.20.2. Needs Node 20.11 or later, npm, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund async-lock@1.5.0 @sapphire/async-queue@1.5.5 > npm.log
cat > seen.js <<'PROGRAM'
const { mock } = require("node:test");
const AsyncLock = require("async-lock");
const { AsyncQueue } = require("@sapphire/async-queue");

mock.timers.enable({ apis: ["setTimeout"] });
let now = 0;

const pass = async (milliseconds) => {
    for (; milliseconds >= 0; --milliseconds) {
        await new Promise(setImmediate);
        if (milliseconds === 0) break;
        mock.timers.tick(1);
        ++now;
    }
};

const report = (name, promise) => {
    const begin = now;
    promise.then(() => console.log(`${name}: is served after ${now - begin} ms`),
                 (error) => console.log(`${name}: fails after ${now - begin} ms, ${error.message}`));
};

const keys = async () => {
    const lock = new AsyncLock();
    for (const [key, time] of [["a", 80], ["b", 160], ["c", 240]]) {
        lock.acquire(key, () => new Promise((done) => setTimeout(done, time)));
    }
    report("async-lock, three keys, 100 ms", lock.acquire(["a", "b", "c"], () => {}, { timeout: 100 }));
    report("async-lock, the last key, 100 ms", lock.acquire("c", () => {}, { timeout: 100 }));
    report("async-lock, the last key, 0 ms", lock.acquire("c", () => {}, { timeout: 0 }));
    await pass(300);
};

const signals = async (when) => {
    const queue = new AsyncQueue();
    const abort = new AbortController();
    await queue.wait();
    if (when === "before") abort.abort();
    report(`async-queue, aborted ${when}`, queue.wait({ signal: abort.signal }));
    await pass(50);
    if (when === "later") abort.abort();
    await pass(50);
    queue.shift();
    await pass(50);
};

keys().then(() => signals("before")).then(() => signals("later"));
PROGRAM
node --no-warnings seen.js | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
async-lock, the last key, 100 ms: fails after 100 ms, async-lock timed out in queue c
async-lock, the last key, 0 ms: is served after 240 ms
async-lock, three keys, 100 ms: is served after 240 ms
async-queue, aborted before: is served after 100 ms
async-queue, aborted later: fails after 50 ms, Request aborted manually
TEXT

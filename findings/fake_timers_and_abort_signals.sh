#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A test installs fake timers and moves the clock by 20 s. Waits of 10 s fall into two kinds:
#   1. setTimeout(), that of timers/promises, and p-event 7.1.1 with a time-out: their time passes.
#   2. AbortSignal.timeout(), all that takes its signal (events.once, p-event), Atomics.waitAsync, and the setTimeout()
#      of timers/promises that a module has imported by its name: they wait on. Their time is the real one:
#      AbortSignal.timeout(50) is aborted although the fake clock stands still.
# Why: Node makes these timers within, and doesn't call the setTimeout() that was replaced. A name that was imported
# stays what it was.
# Guessed before: that all of them follow the fake clock, except Atomics.waitAsync.
# Seen with @sinonjs/fake-timers 15.0.0 (npm, also used by Jest and Vitest) and node:test of Node 20.20.2.
# Needs Node 20.11 or later, npm, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund @sinonjs/fake-timers@15.0.0 p-event@7.1.1 > npm.log
cat > seen.mjs <<'PROGRAM'
import FakeTimers from "@sinonjs/fake-timers";
import { EventEmitter, once } from "node:events";
import { mock } from "node:test";
import promises, { setTimeout as imported } from "node:timers/promises";
import { pEvent } from "p-event";

const realTimeout = setTimeout;
const reallyPause = (milliseconds) => new Promise((resolve) => realTimeout(resolve, milliseconds));

const trial = async (name, tick) => {
    const waits = {
        "setTimeout": new Promise((resolve) => setTimeout(resolve, 10_000)),
        "timers/promises": promises.setTimeout(10_000),
        "timers/promises, by name": imported(10_000),
        "p-event, time-out": pEvent(new EventEmitter(), "none", { timeout: 10_000 }),
        "p-event, signal": pEvent(new EventEmitter(), "none", { signal: AbortSignal.timeout(10_000) }),
        "events.once, signal": once(new EventEmitter(), "none", { signal: AbortSignal.timeout(10_000) }),
        "Atomics.waitAsync": Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10_000).value,
    };
    const ended = new Set();
    for (const [wait, promise] of Object.entries(waits)) {
        const end = () => ended.add(wait);
        promise.then(end, end);
    }
    const short = AbortSignal.timeout(50);
    await reallyPause(500);
    console.log(`${name}, clock stands: ${ended.size} have ended, AbortSignal.timeout(50) aborted: ${short.aborted}`);
    tick(20_000);
    await reallyPause(50);
    for (const wait of Object.keys(waits)) {
        console.log(`${name}, ${wait}: ${ended.has(wait) ? "time passes" : "waits on"}`);
    }
};

const clock = FakeTimers.install();
await trial("sinon", (time) => clock.tick(time));
clock.uninstall();
mock.timers.enable();
await trial("node:test", (time) => mock.timers.tick(time));
process.exit();
PROGRAM
node --no-warnings seen.mjs | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
sinon, clock stands: 0 have ended, AbortSignal.timeout(50) aborted: true
sinon, setTimeout: time passes
sinon, timers/promises: time passes
sinon, timers/promises, by name: waits on
sinon, p-event, time-out: time passes
sinon, p-event, signal: waits on
sinon, events.once, signal: waits on
sinon, Atomics.waitAsync: waits on
node:test, clock stands: 0 have ended, AbortSignal.timeout(50) aborted: true
node:test, setTimeout: time passes
node:test, timers/promises: time passes
node:test, timers/promises, by name: waits on
node:test, p-event, time-out: time passes
node:test, p-event, signal: waits on
node:test, events.once, signal: waits on
node:test, Atomics.waitAsync: waits on
TEXT

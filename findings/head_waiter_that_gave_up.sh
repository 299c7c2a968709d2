#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The waiter at the head of the line gives up. Two packages then let the one behind it wait, although what it waits for
# is free.
#   1. async-mutex 0.5.0, withTimeout() of a semaphore: one of two units is taken, a call for two units waits, and a
#      call for one unit waits behind it. The first call times out. The second doesn't get the free unit, and newcomers
#      queue behind both. Why: the time-out only rejects a promise. The call itself keeps its place until it is served,
#      and then gives the units back.
#   2. tarn 3.1.2, a pool with one resource: the first waiter is aborted, and the resource is released in the same turn
#      of the event loop. The second waiter times out, and all that time the pool counts the resource as free. Why: the
#      resource goes to the aborted waiter, which puts it back and doesn't look for the next one. With the abort one
#      turn earlier, the second is served at once.
# Guessed before: that the next in line is served at once.
# Seen with Node 20.20.2. Needs Node, npm, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund async-mutex@0.5.0 tarn@3.1.2 > npm.log
cat > seen.js <<'PROGRAM'
const { Semaphore, withTimeout } = require("async-mutex");
const { Pool } = require("tarn");

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const follow = (promise) => {
    const followed = { state: "waits" };
    promise.then(() => (followed.state = "is served"), () => (followed.state = "has given up"));
    return followed;
};

const semaphore = async () => {
    const units = new Semaphore(2);
    const [, release] = await units.acquire(1);
    const heavy = follow(withTimeout(units, 50).acquire(2));
    const light = follow(units.acquire(1));
    await pause(300);
    const newcomer = follow(units.acquire(1));
    await pause(50);
    console.log(`async-mutex: first ${heavy.state}, free: ${units.getValue()}, second ${light.state},`,
                `newcomer ${newcomer.state}`);
    release();
    await pause(50);
    console.log(`async-mutex: after a release the second ${light.state}`);
};

const pool = async (turnsBetween) => {
    const resources = new Pool({ min: 0, max: 1, acquireTimeoutMillis: 600, create: async () => ({}), destroy() {} });
    const resource = await resources.acquire().promise;
    const aborted = resources.acquire();
    const first = follow(aborted.promise);
    const second = follow(resources.acquire().promise);
    aborted.abort();
    if (turnsBetween) await pause(0);
    resources.release(resource);
    await pause(300);
    console.log(`tarn, ${turnsBetween} turns between: first ${first.state}, free: ${resources.numFree()},`,
                `second ${second.state}`);
    await pause(600);
    console.log(`tarn, ${turnsBetween} turns between: in the end the second ${second.state}`);
};

semaphore().then(() => pool(0)).then(() => pool(1)).then(() => process.exit());
PROGRAM
node seen.js | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
async-mutex: first has given up, free: 1, second waits, newcomer waits
async-mutex: after a release the second is served
tarn, 0 turns between: first has given up, free: 1, second waits
tarn, 0 turns between: in the end the second has given up
tarn, 1 turns between: first has given up, free: 0, second is served
tarn, 1 turns between: in the end the second is served
TEXT

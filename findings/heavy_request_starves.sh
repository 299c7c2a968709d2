#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One of two units is taken, and a request for both waits. Requests for one unit that come later are served ahead of it,
# twenty of twenty. Each of them comes before the unit of the one before it is released, so both units are never free at
# once. The heavy request waits as long as others come.
#   1. effect 4.1.0 (npm), Semaphore. Why: each waiter is served if the units that are free suffice, wherever it stands.
#   2. marusama/semaphore 2.5.0 (Go). Why: a release wakes everybody, and an arriving caller doesn't look for waiters.
#   3. aiolimiter 1.3.0 (PyPI), two units per interval. Why: its line is sorted by amount, and arrival decides only
#      among equal amounts.
# Guessed before: that the oldest request is served first, as with x/sync's semaphore 0.20.0 (Go), async-mutex 0.5.0
# (npm) and mea 0.6.7 (crates.io).
# Seen with Node 20.20.2, Go 1.26.8 and CPython 3.11.7. Needs Node, npm, go, python3 with venv, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir node go
cd node
npm install --silent --no-audit --no-fund effect@4.1.0 > npm.log
cat > seen.mjs <<'PROGRAM'
import { Effect, Semaphore } from "effect";

const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
const units = Semaphore.makeUnsafe(2);
const release = () => Effect.runSync(units.release(1));
const take = async (count) => {
    const request = { served: false };
    Effect.runFork(units.take(count)).addObserver(() => (request.served = true));
    await pause();
    return request;
};

await take(1);
const heavy = await take(2);
let light = 0;
for (let i = 0; i < 20; ++i) {
    if ((await take(1)).served) ++light;
    release();
    await pause();
}
console.log(`effect: ${light} light ones served, heavy one: ${heavy.served}`);
release();
await pause();
console.log(`effect: no more come, heavy one: ${heavy.served}`);
PROGRAM
node seen.mjs > ../seen.txt
cd ../go
cat > go.mod <<'TEXT'
module seen
go 1.23
require (
	github.com/marusama/semaphore/v2 v2.5.0
	golang.org/x/sync v0.20.0
)
TEXT
cat > main.go <<'CODE'
package main

import (
	"context"
	"fmt"
	"time"

	marusama "github.com/marusama/semaphore/v2"
	"golang.org/x/sync/semaphore"
)

func trial(name string, most time.Duration, acquire func(context.Context, int) error, release func()) {
	acquire(context.Background(), 1)
	served := make(chan bool, 1)
	go func() {
		acquire(context.Background(), 2)
		served <- true
	}()
	time.Sleep(100 * time.Millisecond)
	light := 0
	for i := 0; i < 20; i++ {
		limit, stop := context.WithTimeout(context.Background(), most)
		if acquire(limit, 1) == nil {
			light++
			release()
		}
		stop()
	}
	fmt.Printf("%s: %d light ones served, heavy one: %v\n", name, light, len(served) == 1)
	release()
	fmt.Printf("%s: no more come, heavy one: %v\n", name, <-served)
}

func main() {
	theirs := marusama.New(2)
	trial("marusama", time.Minute, theirs.Acquire, func() { theirs.Release(1) })
	other := semaphore.NewWeighted(2)
	acquire := func(limit context.Context, count int) error { return other.Acquire(limit, int64(count)) }
	trial("x/sync", 20*time.Millisecond, acquire, func() { other.Release(1) })
}
CODE
go mod tidy 2> go.log
go run . >> ../seen.txt
cd ..
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check aiolimiter==1.3.0
python/bin/python - >> seen.txt <<'PROGRAM'
import asyncio

import aiolimiter


async def main():
    limiter = aiolimiter.AsyncLimiter(2, 0.05)
    await limiter.acquire(2)
    heavy = asyncio.create_task(limiter.acquire(2))
    await asyncio.sleep(0)
    light = [asyncio.create_task(limiter.acquire()) for _ in range(2)]
    for _ in range(18):
        await light[-2]
        light.append(asyncio.create_task(limiter.acquire()))
    await asyncio.gather(*light)
    print(f"aiolimiter: {len(light)} light ones served, heavy one: {str(heavy.done()).lower()}")
    await heavy
    print("aiolimiter: no more come, heavy one: true")


asyncio.run(main())
PROGRAM
cat seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
effect: 20 light ones served, heavy one: false
effect: no more come, heavy one: true
marusama: 20 light ones served, heavy one: false
marusama: no more come, heavy one: true
x/sync: 0 light ones served, heavy one: false
x/sync: no more come, heavy one: true
aiolimiter: 20 light ones served, heavy one: false
aiolimiter: no more come, heavy one: true
TEXT

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program of Node waits for Atomics.waitAsync() with a time-out of 60 s, and has nothing else to do. Node ends it at
# once, and the wait's promise is never settled:
#   1. With then(), the process ends well, with code 0, and what was to follow is left out. The same in a worker.
#   2. With a top-level await, it ends at once with code 13 (documented).
#   3. With a worker that is to notify in 0.5 s, the wait gets its "ok"; if the worker is unref()'d, the process ends.
# With a timer beside it, a wait of 1 s ends with "timed-out".
# Why: neither the wait nor its time-out counts as work of the event loop.
# Guessed before: that the process stays until the time-out, as with setTimeout() of timers/promises.
# Seen with Node 20.20.2. Needs Node 20.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > wait.mjs <<'CODE'
import { Worker } from "node:worker_threads";
import { setTimeout as promised } from "node:timers/promises";

const words = new Int32Array(new SharedArrayBuffer(8));
const wait = (milliseconds = 60000) => Atomics.waitAsync(words, 0, 0, milliseconds).value;
const begin = performance.now();
const seconds = () => (performance.now() - begin) / 1000;
process.on("exit", () => console.log(seconds() < 50 ? "end before the time-out" : "end"));
const start = (code) => new Worker(code, { eval: true, workerData: words });
const notifier = () => start(`
  const words = require("worker_threads").workerData;
  Atomics.wait(words, 1, 0, 500);
  Atomics.notify(words, 0);
`);

switch (process.argv[2]) {
  case "then": wait().then(console.log); break;
  case "await": console.log(await wait()); break;
  case "worker":
    start(`Atomics.waitAsync(require("worker_threads").workerData, 0, 0, 60000).value.then(console.log)`);
    break;
  case "timer": setTimeout(() => {}, 3000); console.log(await wait(1000)); break;
  case "promised": await promised(1000); console.log(seconds() > 0.9 ? "its time has passed" : "too early"); break;
  case "notifier": notifier(); console.log(await wait()); break;
  case "unref": notifier().unref(); wait().then(console.log); break;
}
CODE
for kind in 'then' await worker timer promised notifier unref; do
    code=0
    seen=$(node wait.mjs "$kind" 2> warning.log) || code=$?
    echo "$kind: ${seen//$'\n'/; }; code $code"
done | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
then: end before the time-out; code 0
await: end before the time-out; code 13
worker: end before the time-out; code 0
timer: timed-out; end before the time-out; code 0
promised: its time has passed; end before the time-out; code 0
notifier: ok; end before the time-out; code 0
unref: end before the time-out; code 0
TEXT

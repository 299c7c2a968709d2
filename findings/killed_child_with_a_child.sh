#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A child process, a shell, runs `sleep 5`, and both write into a pipe that the program reads. The program gives up
# after 1 s. It then kills the child, but Ruby's Timeout kills nothing. What still waits for the child waits for the
# child's child as well, 5 s in all:
#   1. asyncio: after kill(), Process.wait(). Why: it ends when the pipes are closed, too. The `sleep` has them open.
#   2. Go: exec.CommandContext with an output that is no file, unless WaitDelay is set. Why: Wait() first reads all.
#   3. Ruby: Timeout.timeout around Open3.capture2 or IO.popen. Why: nothing is killed, and the exception on its way out
#      closes the pipe, which waits for the child.
# Guessed before: that asyncio and Ruby end after 1 s, as subprocess.run of CPython, the exec of Node, and Ruby's
# backquotes do. Go's documentation says that Wait waits.
# Seen with CPython 3.11.7 and 3.13.0, Go 1.26.8, Ruby 3.1.2 and Node 20.20.2.
# Needs Go 1.20 or later (WaitDelay), ruby, node, and python3 (or the interpreter that is given).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python=${1:-python3}
cd "$folder"
export CHILD='sleep 5; echo done'
cat > seen.py <<'PROGRAM'
import asyncio
import os
import subprocess
import time


async def wait_of_asyncio():
    child = await asyncio.create_subprocess_shell(os.environ["CHILD"], stdout=subprocess.PIPE)
    try:
        await asyncio.wait_for(child.communicate(), 1)
    except asyncio.TimeoutError:
        child.kill()
        await child.wait()


def wait_of_subprocess():
    try:
        subprocess.run(os.environ["CHILD"], shell=True, capture_output=True, timeout=1)
    except subprocess.TimeoutExpired:
        pass


for name, wait in (("asyncio", lambda: asyncio.run(wait_of_asyncio())), ("subprocess.run", wait_of_subprocess)):
    begin = time.monotonic()
    wait()
    print(name, time.monotonic() - begin, sep="|")
PROGRAM
cat > seen.go <<'PROGRAM'
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

func main() {
	for _, delay := range []time.Duration{0, 10 * time.Millisecond} {
		limit, stop := context.WithTimeout(context.Background(), time.Second)
		command := exec.CommandContext(limit, "sh", "-c", os.Getenv("CHILD"))
		command.Stdout = &bytes.Buffer{}
		command.WaitDelay = delay
		begin := time.Now()
		command.Run()
		fmt.Printf("Go, WaitDelay %v|%f\n", delay, time.Since(begin).Seconds())
		stop()
	}
}
PROGRAM
cat > seen.rb <<'PROGRAM'
require "open3"
require "timeout"

Thread.report_on_exception = false
child = ENV.fetch("CHILD")
waits = {
  "Open3.capture2" => -> { Open3.capture2(child) },
  "IO.popen" => -> { IO.popen(child, &:read) },
  "backquotes" => -> { `#{child}` }
}
waits.each do |name, wait|
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  begin
    Timeout.timeout(1) { wait.call }
  rescue Timeout::Error
    puts "Ruby, #{name}|#{Process.clock_gettime(Process::CLOCK_MONOTONIC) - start}"
  end
end
PROGRAM
cat > seen.js <<'PROGRAM'
const begin = performance.now();
require("node:child_process").exec(process.env.CHILD, { timeout: 1000 }, () => {
    console.log(`Node, exec|${(performance.now() - begin) / 1000}`);
});
PROGRAM
{
    "$python" seen.py
    go run seen.go
    ruby seen.rb
    node seen.js
} > times.txt
awk -F'|' '{ print $1 ": " ($2 < 3.5 ? "1 s" : "5 s") }' times.txt | tee seen.txt
diff - seen.txt <<'TEXT' || { cat times.txt; echo "changed"; exit 1; }
asyncio: 5 s
subprocess.run: 1 s
Go, WaitDelay 0s: 5 s
Go, WaitDelay 10ms: 1 s
Ruby, Open3.capture2: 5 s
Ruby, IO.popen: 5 s
Ruby, backquotes: 1 s
Node, exec: 1 s
TEXT

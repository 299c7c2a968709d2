#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Some packages give a time-out another length, depending on the part of the current second in which the wait begins.
# The first two put POSIX's process-shared objects into shared memory:
#   1. raw_sync 0.1.5 (crates.io), events and mutexes: a wait fails at once if the fraction of the current second and
#      that of the time-out are a second or more together. A mutex then says error 22, an event what it says of a
#      time-out. Why: the deadline gets more than 999,999,999 nanoseconds, which POSIX refuses.
#   2. prwlock 0.4.1 (PyPI): a time-out ends too early by the fraction of the current second, so one of 0.7 s that
#      begins at .8 doesn't wait at all. Why: the deadline counts from the beginning of that second.
#   3. Thread::Queue 3.14 (dequeue_timed) and Thread::Semaphore 2.13 (down_timed), which come with Perl, do the same as
#      prwlock within a process.
# Guessed before: that a wait lasts as long as it was told, whenever it begins.
# Seen on Linux 6.18 with Rust 1.95.0, CPython 3.11.7 and Perl 5.36.0.
# Needs cargo, python3 with venv, perl, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat > Cargo.toml <<'TEXT'
[package]
name = "seen"
version = "0.1.0"
edition = "2021"
[dependencies]
raw_sync = "=0.1.5"
TEXT
cat > src/main.rs <<'CODE'
use raw_sync::{events::*, locks::*, Timeout};
use std::{thread, time::*};

fn begin_at(part: u32) {
    while SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_millis() / 10 != part / 10 {
        thread::sleep(Duration::from_millis(1));
    }
}

fn lasts(wait: impl Fn() -> bool) -> u128 {
    let begin = Instant::now();
    assert!(!wait());
    begin.elapsed().as_millis()
}

fn main() {
    let memory = vec![0u64; 64].leak().as_mut_ptr() as usize;
    let (event, size) = unsafe { Event::new(memory as *mut u8, false) }.unwrap();
    let behind = (memory + size + 63) / 64 * 64;
    let (mutex, _) = unsafe { Mutex::new(behind as *mut u8, std::ptr::null_mut()) }.unwrap();
    let guard = mutex.lock().unwrap();
    for part in [100, 800] {
        begin_at(part);
        let event_lasts = lasts(|| event.wait(Timeout::Val(Duration::from_millis(700))).is_ok());
        begin_at(part);
        let mutex_lasts = lasts(|| mutex.try_lock(Timeout::Val(Duration::from_millis(700))).is_ok());
        println!("700 ms from .{part} on: event {event_lasts} ms, mutex {mutex_lasts} ms");
        let right = if part == 100 { 650..2000 } else { 0..350 };
        assert!(right.contains(&event_lasts) && right.contains(&mutex_lasts), "(1) has changed");
    }
    drop(guard);
    std::mem::forget(event);
}
CODE
cargo run --quiet
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check prwlock==0.4.1
python/bin/python - <<'PROGRAM'
import sys
import threading
import time

import prwlock

lock = prwlock.RWLock()
lock.acquire_read()


def wait(part, lasted):
    while not part <= time.time() % 1 < part + 0.01:
        time.sleep(0.001)
    begin = time.monotonic()
    assert not lock.acquire_write(0.7)
    lasted.append(time.monotonic() - begin)


for part, least, most in ((0.1, 0.5, 5), (0.8, 0, 0.3)):
    lasted = []
    thread = threading.Thread(target=wait, args=(part, lasted))
    thread.start()
    thread.join()
    print(f"prwlock: 700 ms from {part} on: {lasted[0] * 1000:.0f} ms")
    if not least <= lasted[0] < most:
        sys.exit("(2) has changed")
PROGRAM
perl - <<'PROGRAM'
use strict;
use warnings;
use threads;
use Thread::Queue;
use Thread::Semaphore;
use Time::HiRes qw(sleep time);

my %waits = ("Thread::Queue" => sub { Thread::Queue->new->dequeue_timed(1) },
             "Thread::Semaphore" => sub { Thread::Semaphore->new(0)->down_timed(1) });
for my $name (sort keys %waits) {
    for ([0.1, 0.6, 5], [0.8, 0, 0.6]) {
        my ($part, $least, $most) = @$_;
        sleep(0.001) until int(100 * (time() - int(time()))) == 100 * $part;
        my $begin = time();
        die "a wait has succeeded" if $waits{$name}->();
        my $lasted = time() - $begin;
        printf "%s: 1 s from %s on: %.0f ms\n", $name, $part, 1000 * $lasted;
        die "(3) has changed" if $lasted < $least || $lasted > $most;
    }
}
PROGRAM

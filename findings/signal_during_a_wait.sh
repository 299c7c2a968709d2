#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main thread waits with a time-out of 4 s, and nothing comes but a signal that has a handler, after 2 s.
#   1. The handler runs at once, and the wait ends as if it had been notified: ConditionVariable#wait and a Monitor's
#      wait of Ruby 3.1.2, and wait-condition-variable of Guile 3.0.8, return what is true. (After a time-out they
#      return nil, false, and #f.)
#   2. The handler runs only when the wait is over: cond_timedwait of Perl 5.36.0, and with it Thread::Queue; flock and
#      time_sleep_until of PHP 8.2 with asynchronous signals; Atomics.wait of Node 20.20.2.
#   3. The same, and the wait lasts 6 s, for its time begins anew: fread of PHP 8.2 from a socket with a time-out.
# Guessed before: that the handler runs at once, and the wait goes on to its end, as with Ruby's sleep and Thread#join,
# Guile's lock-mutex, and CPython's threading and multiprocessing.
# Seen with Debian 12's Ruby, Guile, Perl and PHP, and with CPython 3.11.7.
# Needs ruby, guile, perl, php (php-cli), node, python3, and flock.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# Each program prints its waits: name, when the handler ran, how long the wait lasted, what it returned.
cat > seen.rb <<'PROGRAM'
require "monitor"

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

trap("USR2") { $handled = now }

def trial(name)
  system "(sleep 2; kill -USR2 #{Process.pid}) &"
  begin_time = now
  result = yield
  puts "Ruby, #{name}|#{$handled - begin_time}|#{now - begin_time}|#{result ? "true" : "false"}"
end

mutex = Mutex.new
condition = ConditionVariable.new
monitor = Monitor.new
change = monitor.new_cond
trial("ConditionVariable#wait") { mutex.synchronize { condition.wait(mutex, 4) } }
trial("Monitor") { monitor.synchronize { change.wait(4) } }
trial("Thread#join") { Thread.new { sleep 60 }.join(4) }
trial("sleep") { sleep(4) }
PROGRAM
cat > seen.scm <<'PROGRAM'
(use-modules (ice-9 threads))
(define (now) (exact->inexact (/ (get-internal-real-time) internal-time-units-per-second)))
(define handled 0)
(sigaction SIGUSR2 (lambda (signal) (set! handled (now))))

(define (trial name wait)
  (system (string-append "(sleep 2; kill -USR2 " (number->string (getpid)) ") &"))
  (let* ((begin-time (now)) (clock (gettimeofday)) (result (wait (cons (+ 4 (car clock)) (cdr clock)))))
    (format #t "Guile, ~a|~a|~a|~a~%" name (- handled begin-time) (- (now) begin-time) result)))

(define mutex (make-mutex))
(define condition (make-condition-variable))
(define locked (make-mutex))
(define holder (call-with-new-thread (lambda () (lock-mutex locked) (sleep 60))))
(trial "wait-condition-variable"
       (lambda (deadline) (with-mutex mutex (wait-condition-variable condition mutex deadline))))
(trial "lock-mutex" (lambda (deadline) (lock-mutex locked deadline)))
PROGRAM
cat > seen.pl <<'PROGRAM'
use strict;
use warnings;
use threads;
use threads::shared;
use Thread::Queue;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC time);

sub now { return clock_gettime(CLOCK_MONOTONIC) }

my $handled = 0;
$SIG{USR2} = sub { $handled = now() };

sub trial {
    my ($name, $wait) = @_;
    system("(sleep 2; kill -USR2 $$) &");
    my $begin = now();
    my $result = $wait->();
    print "Perl, $name|", $handled - $begin, "|", now() - $begin, "|", $result ? "true" : "false", "\n";
}

my $condition : shared = 0;
my $queue = Thread::Queue->new;
trial("cond_timedwait", sub { lock $condition; cond_timedwait($condition, time + 4) });
trial("Thread::Queue", sub { $queue->dequeue_timed(time + 4) });
PROGRAM
cat > seen.php <<'PROGRAM'
<?php
pcntl_async_signals(true);
$handled = 0;
pcntl_signal(SIGUSR2, function () { $GLOBALS["handled"] = hrtime(true); });

function trial($name, $wait) {
    shell_exec("(sleep 2; kill -USR2 " . getmypid() . ") > /dev/null 2>&1 &");
    $begin = hrtime(true);
    $result = $wait();
    $times = [($GLOBALS["handled"] - $begin) / 1e9, (hrtime(true) - $begin) / 1e9];
    echo "PHP, $name|$times[0]|$times[1]|", $result ? "true" : "false", "\n";
}

shell_exec("flock held sh -c 'touch locked; sleep 4.2' > /dev/null 2>&1 &");
while (!file_exists("locked")) usleep(1000);
trial("flock", fn() => flock(fopen("held", "w"), LOCK_EX));
trial("time_sleep_until", fn() => time_sleep_until(microtime(true) + 4));
trial("fread", function () {
    $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
    stream_set_timeout($pair[0], 4);
    return fread($pair[0], 1);
});
PROGRAM
cat > seen.js <<'PROGRAM'
const { spawn } = require("node:child_process");
process.on("SIGUSR2", () => console.log(`Node, Atomics.wait|${performance.now() / 1e3 - begin}|${took}|${result}`));
spawn("sh", ["-c", `sleep 2; kill -USR2 ${process.pid}`]);
const begin = performance.now() / 1e3;
const result = Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4000);
const took = performance.now() / 1e3 - begin;
setTimeout(() => {}, 500);
PROGRAM
cat > seen.py <<'PROGRAM'
import multiprocessing
import os
import signal
import threading
import time

handled = []
signal.signal(signal.SIGUSR2, lambda *_: handled.append(time.monotonic()))
condition = threading.Condition()
semaphore = multiprocessing.Semaphore(0)
condition.acquire()
for name, wait in (("threading", lambda: condition.wait(4)), ("multiprocessing", lambda: semaphore.acquire(timeout=4))):
    os.system(f"(sleep 2; kill -USR2 {os.getpid()}) &")
    begin = time.monotonic()
    result = wait()
    print(f"CPython, {name}|{handled[-1] - begin}|{time.monotonic() - begin}|{result}")
PROGRAM
{
    ruby seen.rb
    guile --no-auto-compile seen.scm
    perl seen.pl
    php seen.php
    node seen.js
    python3 seen.py
} > times.txt
awk -F'|' '{
    handler = $2 < 3 ? "handler at once" : "handler after the wait"
    wait = $3 < 3 ? "ended by the signal" : $3 < 5 ? "goes on" : "begins anew"
    print $1 ": " handler ", wait " wait ", returns " $4
}' times.txt | tee seen.txt
diff - seen.txt <<'TEXT' || { cat times.txt; echo "changed"; exit 1; }
Ruby, ConditionVariable#wait: handler at once, wait ended by the signal, returns true
Ruby, Monitor: handler at once, wait ended by the signal, returns true
Ruby, Thread#join: handler at once, wait goes on, returns false
Ruby, sleep: handler at once, wait goes on, returns true
Guile, wait-condition-variable: handler at once, wait ended by the signal, returns #t
Guile, lock-mutex: handler at once, wait goes on, returns #f
Perl, cond_timedwait: handler after the wait, wait goes on, returns false
Perl, Thread::Queue: handler after the wait, wait goes on, returns false
PHP, flock: handler after the wait, wait goes on, returns true
PHP, time_sleep_until: handler after the wait, wait goes on, returns true
PHP, fread: handler after the wait, wait begins anew, returns false
Node, Atomics.wait: handler after the wait, wait goes on, returns timed-out
CPython, threading: handler at once, wait goes on, returns False
CPython, multiprocessing: handler at once, wait goes on, returns False
TEXT

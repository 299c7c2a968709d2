#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two threads wait. The first is woken, and is killed before it runs (or an exception is raised in it, as
# Timeout.timeout does). The wake-up ends with it: the second thread sleeps on beside the change until a further
# notification comes, or its own time-out, which each wait below has.
#   1. Ruby 3.1.2: ConditionVariable#wait, and a Monitor's condition. Queue#pop, SizedQueue#push and Mutex#lock do the
#      same beside an item, room, or a free lock. They have no time-out in this version, so no trial is here.
#   2. Guile 3.0.8: wait-condition-variable and cancel-thread.
#   3. eventlet 0.41.3 (PyPI): Condition of its green threading.
# Why: the waker takes the first thread from the line and wakes it. A thread that wakes to die looks neither whether it
# was woken, nor for the next in line.
# Guessed before: that the second thread gets what the first can't take, as with queues and semaphores of eventlet; or
# that the first gets it before it dies, as with gevent 26.9.0.
# In Ruby a thread that is woken may run before it is killed, so each line of Ruby's is what most of five rounds showed.
# Seen with Debian 12's Ruby and Guile, and CPython 3.11.7. Needs ruby, guile, python3 with venv, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > seen.rb <<'PROGRAM'
require "monitor"

def trial(name, how, wait, wake)
  slept = 5.times.count do
    served = []
    first, second = [1, 2].map do |number|
      thread = Thread.new do
        Thread.current.report_on_exception = false
        wait.call
        served << number
      end
      sleep 0.01 until thread.status == "sleep"
      thread
    end
    wake.call
    first.kill if how == "killed"
    first.raise "stop" if how == "interrupted"
    sleep 0.2
    sleeps = served.empty?
    wake.call
    second.join
    sleeps
  end
  puts "Ruby, #{name}, first #{how}: #{slept > 2 ? "second sleeps on" : "one is served"}"
end

mutex = Mutex.new
condition = ConditionVariable.new
monitor = Monitor.new
change = monitor.new_cond
%w[unharmed killed interrupted].each do |how|
  trial("ConditionVariable#wait", how, -> { mutex.synchronize { condition.wait(mutex, 3) } },
        -> { mutex.synchronize { condition.signal } })
  trial("Monitor", how, -> { monitor.synchronize { change.wait(3) } }, -> { monitor.synchronize { change.signal } })
end
PROGRAM
cat > seen.scm <<'PROGRAM'
(use-modules (ice-9 threads))
(define mutex (make-mutex))
(define condition (make-condition-variable))
(define items 0)
(define waiting 0)
(define served 0)

(define (wait)
  (with-mutex mutex
    (set! waiting (+ waiting 1))
    (let ((deadline (+ (current-time) 4)))
      (while (and (= items 0) (wait-condition-variable condition mutex deadline))))
    (when (> items 0)
      (set! items (- items 1))
      (set! served (+ served 1)))))

(define (start count)
  (let ((thread (call-with-new-thread wait)))
    (while (not (= (with-mutex mutex waiting) count)) (usleep 1000))
    thread))

(define (trial how)
  (set! items 0)
  (set! waiting 0)
  (set! served 0)
  (let* ((first (start 1)) (second (start 2)))
    (with-mutex mutex
      (set! items 1)
      (signal-condition-variable condition)
      (when (equal? how "killed") (cancel-thread first)))
    (usleep 1000000)
    (let ((sleeps (= served 0)))
      (with-mutex mutex
        (set! items 2)
        (signal-condition-variable condition))
      (join-thread second (+ (current-time) 60))
      (format #t "Guile, condition, first ~a: ~a~%" how (if sleeps "second sleeps on" "one is served")))))

(trial "unharmed")
(trial "killed")
PROGRAM
cat > seen.py <<'PROGRAM'
import eventlet
import eventlet.queue
import eventlet.semaphore
import gevent
import gevent.lock
import gevent.queue
from eventlet.green import threading


def trial(name, library, how, wait, wake):
    served = []

    def serve(number):
        wait()
        served.append(number)

    first, second = [library.spawn(serve, number) for number in (1, 2)]
    library.sleep(0.05)
    wake()
    if how == "killed" and library is gevent:
        first.kill(block=False)
    elif how == "killed":
        first.kill()
    library.sleep(0.2)
    print(f"{name}, first {how}: {'one is served' if served else 'second sleeps on'}")
    wake()
    library.sleep(0.05)
    assert served
    first.kill()
    second.kill()


def notify():
    with condition:
        condition.notify()


def wait():
    with condition:
        condition.wait(3)


condition = threading.Condition()
for how in ("unharmed", "killed"):
    queue = eventlet.queue.Queue()
    trial("eventlet, Queue", eventlet, how, queue.get, lambda: queue.put(1))
    permits = eventlet.semaphore.Semaphore(0)
    trial("eventlet, Semaphore", eventlet, how, permits.acquire, permits.release)
    trial("eventlet, Condition", eventlet, how, wait, notify)
    other = gevent.queue.Queue()
    trial("gevent, Queue", gevent, how, other.get, lambda: other.put(1))
PROGRAM
ruby seen.rb > seen.txt
guile --no-auto-compile seen.scm >> seen.txt
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check eventlet==0.41.3 gevent==26.9.0
python/bin/python -W ignore seen.py >> seen.txt
cat seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
Ruby, ConditionVariable#wait, first unharmed: one is served
Ruby, Monitor, first unharmed: one is served
Ruby, ConditionVariable#wait, first killed: second sleeps on
Ruby, Monitor, first killed: second sleeps on
Ruby, ConditionVariable#wait, first interrupted: second sleeps on
Ruby, Monitor, first interrupted: second sleeps on
Guile, condition, first unharmed: one is served
Guile, condition, first killed: second sleeps on
eventlet, Queue, first unharmed: one is served
eventlet, Semaphore, first unharmed: one is served
eventlet, Condition, first unharmed: one is served
gevent, Queue, first unharmed: one is served
eventlet, Queue, first killed: one is served
eventlet, Semaphore, first killed: one is served
eventlet, Condition, first killed: second sleeps on
gevent, Queue, first killed: one is served
TEXT

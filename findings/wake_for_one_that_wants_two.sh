#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A thread waits for two items (or permits), and a thread behind it waits for one. One item comes. The second thread
# sleeps on beside it, and a third that comes later takes the item at once.
#   1. Thread::Queue 3.14 of Perl, dequeue for two and for one.
#   2. concurrent-ruby 1.1.6, Semaphore, acquire for two and for one.
# The trials use the calls with a time-out (dequeue_timed, try_acquire), which sleep on until it is over.
# Why: all wait on one condition, and one item notifies one thread. That is the first, which has no use for one item and
# sleeps again without passing the notification on.
# Guessed before: either that the second gets the item, as with Perl's Thread::Semaphore 2.13, or that everybody who
# comes later waits as well, since the first is in line ahead of them.
# Seen with Perl 5.36.0 and Ruby 3.1.2. Needs Debian 12 with perl and ruby, and apt-get with a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq -o APT::Sandbox::User=root ruby-concurrent=1.1.6+dfsg-5 2> apt.log || { cat apt.log; exit 1; }
dpkg -x ruby-concurrent_*.deb package
cat > seen.pl <<'PROGRAM'
use strict;
use warnings;
use threads;
use Thread::Queue;
use Thread::Semaphore;

sub pause { select(undef, undef, undef, 0.5) }

sub trial {
    my ($name, $take, $give) = @_;
    my @started;
    for my $count (2, 1) {
        push @started, threads->create(sub { $take->($count) });
        pause();
    }
    $give->(1);
    pause();
    print "$name: for two: ", $started[0]->is_running ? "waits" : "served";
    print ", for one: ", $started[1]->is_running ? "waits" : "served";
    my $newcomer = threads->create(sub { $take->(1) });
    pause();
    print ", newcomer: ", $newcomer->is_running ? "waits" : "served", "\n";
    $give->(10);
    $_->join for @started, $newcomer;
}

my $queue = Thread::Queue->new;
trial("Thread::Queue", sub { $queue->dequeue_timed(100, $_[0]) }, sub { $queue->enqueue($_) for 1 .. $_[0] });
my $permits = Thread::Semaphore->new(0);
trial("Thread::Semaphore", sub { $permits->down_timed(100, $_[0]) }, sub { $permits->up($_[0]) });
PROGRAM
cat > seen.rb <<'PROGRAM'
require "concurrent/atomic/semaphore"
require "concurrent/utility/monotonic_time"

permits = Concurrent::Semaphore.new(0)
threads = []
start = lambda do |count|
  threads << Thread.new { permits.try_acquire(count, 100) }
  sleep 0.5
end
state = ->(thread) { thread.alive? ? "waits" : "served" }
start.call(2)
start.call(1)
permits.release(1)
sleep 0.5
print "concurrent-ruby: for two: #{state.call(threads[0])}, for one: #{state.call(threads[1])}"
start.call(1)
puts ", newcomer: #{state.call(threads[2])}"
permits.release(10)
threads.each(&:join)
PROGRAM
perl seen.pl > seen.txt
ruby -I package/usr/share/rubygems-integration/all/gems/concurrent-ruby-1.1.6/lib/concurrent-ruby seen.rb >> seen.txt
cat seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
Thread::Queue: for two: waits, for one: waits, newcomer: served
Thread::Semaphore: for two: waits, for one: served, newcomer: waits
concurrent-ruby: for two: waits, for one: waits, newcomer: served
TEXT

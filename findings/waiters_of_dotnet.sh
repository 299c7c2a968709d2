#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What .NET does with threads that wait:
#   1. SemaphoreSlim: threads in Wait() and tasks of WaitAsync() come by turns, a thread first. Each release serves a
#      task, although a thread came earlier. The threads get their permits when no task is left. A task that comes later
#      is ahead of them, too: 20 of 20. Why: a release marks a thread to be woken, and gives the permit to a task under
#      the same lock, before the thread can run.
#   2. ManualResetEventSlim and CountdownEvent: five threads wait, and one thread calls Set() (or Signal()) and Reset()
#      at once. In most of 4 rounds, some of the five sleep on until their time-outs. Why: a woken thread looks at the
#      state again. ManualResetEvent, without Slim, lets all five go each time.
#   3. Monitor.Pulse() may choose a thread that was interrupted. It throws, and the thread behind it isn't woken: the
#      notification is lost. (Java promises that it isn't.)
#   4. A task of WaitAsync() stays pending when its semaphore is disposed of.
# Guessed before: that (1) serves by arrival, (2) lets all go, as it is called an event too, (3) reaches the other
# thread, (4) fails with ObjectDisposedException, as later calls do.
# Seen with .NET Core 3.1.23 (in PyPI's dotnetcore2). Needs mcs (mono-mcs), python3 with pip, unzip, and a network.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest . \
    --platform manylinux1_x86_64 --only-binary :all: dotnetcore2==3.1.23
unzip -q dotnetcore2-*.whl
chmod +x dotnetcore2/bin/dotnet
cat > Seen.cs <<'CODE'
using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

static class Seen {
    static readonly List<string> notes = new List<string>();

    static void Note(object what) { lock (notes) notes.Add(what.ToString()); }

    static void Print(string name) {
        lock (notes) {
            Console.WriteLine(name + ": " + string.Join(" ", notes));
            notes.Clear();
        }
    }

    // Starts a thread that waits, and returns when it does.
    static Thread Waiter(Action wait) {
        var thread = new Thread(() => wait()) { IsBackground = true };
        thread.Start();
        while ((thread.ThreadState & ThreadState.WaitSleepJoin) == 0) Thread.Sleep(1);
        Thread.Sleep(20);
        return thread;
    }

    static void Semaphore() {
        var semaphore = new SemaphoreSlim(0);
        for (int i = 0; i < 6; ++i) {
            int number = i;
            if (i % 2 == 0) Waiter(() => { semaphore.Wait(); Note("thread" + number); });
            else semaphore.WaitAsync().ContinueWith(_ => Note("task" + number));
        }
        for (int i = 1; i <= 6; ++i) {
            semaphore.Release();
            if (!SpinWait.SpinUntil(() => { lock (notes) return notes.Count == i; }, 5000)) Note("nobody");
        }
        lock (notes) notes.Sort(3, 3, null); // which thread comes first is up to their lock
        Print("SemaphoreSlim");
    }

    static void Newcomers() {
        var semaphore = new SemaphoreSlim(0);
        int at = -1, served = 0;
        var thread = Waiter(() => { semaphore.Wait(); Volatile.Write(ref at, Volatile.Read(ref served)); });
        for (int i = 0; i < 20; ++i) {
            var task = semaphore.WaitAsync();
            semaphore.Release();
            if (task.Wait(5000)) Interlocked.Increment(ref served);
        }
        semaphore.Release();
        thread.Join();
        Console.WriteLine("SemaphoreSlim: tasks served ahead of a thread: " + at);
    }

    static void Reset(string name, Func<Func<bool>> make_round, Action set_and_reset) {
        int incomplete = 0;
        for (int round = 0; round < 4; ++round) {
            var wait = make_round();
            int woken = 0;
            var threads = new List<Thread>();
            for (int i = 0; i < 5; ++i) threads.Add(Waiter(() => { if (wait()) Interlocked.Increment(ref woken); }));
            set_and_reset();
            foreach (var thread in threads) thread.Join();
            if (woken < 5) ++incomplete;
        }
        Console.Error.WriteLine(name + ", incomplete rounds: " + incomplete);
        Console.WriteLine(name + ": " + (incomplete == 0 ? "all are woken" : "some sleep on"));
    }

    static void Pulse() {
        var both = new object();
        bool interrupted = false, second = true;
        var first = Waiter(() => {
            lock (both) {
                try { Monitor.Wait(both, 20000); } catch (ThreadInterruptedException) { interrupted = true; }
            }
        });
        var other = Waiter(() => { lock (both) second = Monitor.Wait(both, 2000); });
        lock (both) {
            first.Interrupt();
            Monitor.Pulse(both);
        }
        first.Join();
        other.Join();
        Console.WriteLine("Pulse: interrupted " + interrupted + ", the other is woken " + second);
    }

    static void Dispose() {
        var semaphore = new SemaphoreSlim(0);
        var task = semaphore.WaitAsync();
        semaphore.Dispose();
        bool done = ((IAsyncResult)task).AsyncWaitHandle.WaitOne(500);
        string later = "nothing";
        try { semaphore.Release(); } catch (Exception e) { later = e.GetType().Name; }
        Console.WriteLine("disposed: task done " + done + ", a release throws " + later);
    }

    static void Main() {
        ThreadPool.SetMinThreads(20, 20);
        Semaphore();
        Newcomers();
        var slim = new ManualResetEventSlim(false, 0);
        Reset("ManualResetEventSlim", () => () => slim.Wait(300), () => { slim.Set(); slim.Reset(); });
        var count = new CountdownEvent(1);
        Reset("CountdownEvent", () => () => count.Wait(300), () => { count.Signal(); count.Reset(); });
        var full = new ManualResetEvent(false);
        Reset("ManualResetEvent", () => () => full.WaitOne(10000), () => { full.Set(); full.Reset(); });
        Pulse();
        Dispose();
    }
}
CODE
framework=dotnetcore2/bin/shared/Microsoft.NETCore.App/3.1.23
references=()
for name in System.Private.CoreLib System.Runtime System.Threading System.Collections System.Console \
    System.Threading.Tasks System.Threading.Thread System.Threading.ThreadPool System.Runtime.Extensions netstandard; do
    references+=("-r:$framework/$name.dll")
done
mcs -nologo -nostdlib -noconfig "${references[@]}" -out:Seen.dll Seen.cs > mcs.log 2>&1 || { cat mcs.log; exit 1; }
cat > Seen.runtimeconfig.json <<'TEXT'
{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "3.1.23"}}}
TEXT
DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 dotnetcore2/bin/dotnet Seen.dll | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
SemaphoreSlim: task1 task3 task5 thread0 thread2 thread4
SemaphoreSlim: tasks served ahead of a thread: 20
ManualResetEventSlim: some sleep on
CountdownEvent: some sleep on
ManualResetEvent: all are woken
Pulse: interrupted True, the other is woken False
disposed: task done False, a release throws ObjectDisposedException
TEXT

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What .NET does with threads that wait:
#   1. ManualResetEventSlim and CountdownEvent: five threads wait, and one thread calls Set() (or Signal()) and Reset()
#      at once. In at least one of 4 rounds, some of the five sleep on until their time-outs. Why: a woken thread looks
#      at the state again. ManualResetEvent, without Slim, lets all five go each time.
#   2. Monitor.Pulse() here chooses a thread that was interrupted. It throws, and the thread behind it isn't woken: the
#      notification is lost. (Java promises that it isn't.)
# Guessed before: that (1) lets all go, as it is called an event too, and (2) reaches the other thread.
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

static class Seen {
    // Starts a thread that waits, and returns when it does.
    static Thread Waiter(Action wait) {
        var thread = new Thread(() => wait()) { IsBackground = true };
        thread.Start();
        while ((thread.ThreadState & ThreadState.WaitSleepJoin) == 0) Thread.Sleep(1);
        Thread.Sleep(20);
        return thread;
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

    static void Main() {
        var slim = new ManualResetEventSlim(false, 0);
        Reset("ManualResetEventSlim", () => () => slim.Wait(2000), () => { slim.Set(); slim.Reset(); });
        var count = new CountdownEvent(1);
        Reset("CountdownEvent", () => () => count.Wait(2000), () => { count.Signal(); count.Reset(); });
        var full = new ManualResetEvent(false);
        Reset("ManualResetEvent", () => () => full.WaitOne(10000), () => { full.Set(); full.Reset(); });
        Pulse();
    }
}
CODE
framework=dotnetcore2/bin/shared/Microsoft.NETCore.App/3.1.23
references=()
for name in System.Private.CoreLib System.Runtime System.Threading System.Collections System.Console \
    System.Threading.Thread System.Runtime.Extensions netstandard; do
    references+=("-r:$framework/$name.dll")
done
mcs -nologo -nostdlib -noconfig "${references[@]}" -out:Seen.dll Seen.cs > mcs.log 2>&1 || { cat mcs.log; exit 1; }
cat > Seen.runtimeconfig.json <<'TEXT'
{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "3.1.23"}}}
TEXT
DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 dotnetcore2/bin/dotnet Seen.dll | tee seen.txt
diff - seen.txt <<'TEXT' || { echo "changed"; exit 1; }
ManualResetEventSlim: some sleep on
CountdownEvent: some sleep on
ManualResetEvent: all are woken
Pulse: interrupted True, the other is woken False
TEXT

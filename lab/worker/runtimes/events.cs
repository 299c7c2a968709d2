// SPDX-License-Identifier: Apache-2.0
// .NET's events in the scenarios of the lab; worker.py says how it is called.

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.Threading;

static class Events {
    static long Now() {
        return (long)(Stopwatch.GetTimestamp() * (1e9 / Stopwatch.Frequency));
    }

    static void Meet(string word) {
        Console.Out.WriteLine(word);
        Console.Out.Flush();
        Console.In.ReadLine();
    }

    static void Report(string metric, int size, List<long> times) {
        Console.Out.WriteLine("batch " + metric + " " + size + " " + string.Join(" ", times));
    }

    static int Repeat(long budget, string metric, int size, Action operation) {
        var times = new List<long>();
        Meet("ready");
        for (long end = Now() + budget; times.Count == 0 || Now() < end;) {
            long start = Now();
            for (int i = 0; i < size; ++i) operation();
            times.Add(Now() - start);
        }
        Meet("done");
        Report(metric, size, times);
        Console.Out.WriteLine("operations " + size * times.Count);
        return size * times.Count;
    }

    static void Pairs(long budget, string operation) {
        if (operation == "auto_set_wait") {
            var one = new AutoResetEvent(false);
            Repeat(budget, "time", 200, () => { one.Set(); one.WaitOne(); });
            if (one.WaitOne(0)) Console.Out.WriteLine("wrong as many waits as sets leave it unset");
        } else {
            var all = new ManualResetEventSlim(false);
            Repeat(budget, "time", 200, () => { all.Set(); all.Reset(); });
            if (all.IsSet) Console.Out.WriteLine("wrong set and reset leave it unset");
        }
    }

    static void PingPong(long budget) {
        var there = new AutoResetEvent(false);
        var back = new AutoResetEvent(false);
        int answers = 0;
        var partner = new Thread(() => {
            for (;;) {
                there.WaitOne();
                ++answers;
                back.Set();
            }
        });
        partner.IsBackground = true;
        partner.Start();
        int trips = Repeat(budget, "trip", 8, () => { there.Set(); back.WaitOne(); });
        if (answers != trips) Console.Out.WriteLine("wrong each trip is answered once");
    }

    static void Broadcast(long budget, int count) {
        var held = new List<long>();
        var last = new List<long>();
        var woke = new long[count];
        // Each round has new events, and a thread that is late still uses those of its own round.
        var gates = new ManualResetEventSlim[2];
        CountdownEvent all = null;
        int arrived = 0, awake = 0;
        bool over = false;
        gates[0] = new ManualResetEventSlim(false);
        for (int i = 0; i < count; ++i) {
            int index = i;
            var thread = new Thread(() => {
                for (int repetition = 0;; ++repetition) {
                    var gate = Volatile.Read(ref gates[repetition % 2]);
                    Interlocked.Increment(ref arrived);
                    gate.Wait();
                    if (over) return;
                    woke[index] = Now();
                    Interlocked.Increment(ref awake);
                    all.Signal();
                }
            }, 256 * 1024);
            thread.IsBackground = true;
            thread.Start();
        }
        Meet("ready");
        bool early = false;
        int done = 0;
        for (long end = Now() + budget; done < 3 || Now() < end; ++done) {
            while (Volatile.Read(ref arrived) < count * (done + 1)) Thread.Sleep(1);
            Thread.Sleep(10);
            early |= Volatile.Read(ref awake) != count * done;
            all = new CountdownEvent(count);
            Volatile.Write(ref gates[(done + 1) % 2], new ManualResetEventSlim(false));
            long start = Now();
            gates[done % 2].Set();
            held.Add(Now() - start);
            all.Wait();
            long latest = start;
            foreach (long at in woke) latest = Math.Max(latest, at);
            last.Add(latest - start);
        }
        Meet("done");
        Report("held", 1, held);
        Report("last", 1, last);
        Console.Out.WriteLine("operations " + (long)count * done);
        if (early) Console.Out.WriteLine("wrong nobody wakes before the set");
        over = true;
        gates[done % 2].Set();
    }

    static void Main(string[] words) {
        long budget = (long)(double.Parse(words[1], CultureInfo.InvariantCulture) * 1e6);
        string given = words[2].Split('=')[1];
        if (words[0] == "pairs") Pairs(budget, given);
        else if (words[0] == "ping_pong") PingPong(budget);
        else Broadcast(budget, int.Parse(given));
    }
}

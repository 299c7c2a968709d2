// SPDX-License-Identifier: Apache-2.0
//! The events of iceoryx2 between processes, in the scenario of the lab; worker.py says how it is called.

use std::io::{self, Write};
use std::time::Instant;

use iceoryx2::port::{listener::Listener, notifier::Notifier};
use iceoryx2::prelude::*;

struct Event {
    notifier: Notifier<ipc::Service>,
    listener: Option<Listener<ipc::Service>>,
}

impl Event {
    /// An event has one listener: the process that waits for it.
    fn named(node: &Node<ipc::Service>, owner: &str, name: &str, waits: bool) -> Event {
        let name = format!("lab/{owner}/{name}");
        let service = node
            .service_builder(&name.as_str().try_into().unwrap())
            .event()
            .open_or_create()
            .unwrap();
        Event {
            listener: waits.then(|| service.listener_builder().create().unwrap()),
            notifier: service.notifier_builder().create().unwrap(),
        }
    }
    fn set(&self) {
        self.notifier.notify().unwrap();
    }
    fn look(&self) -> bool {
        self.listener
            .as_ref()
            .unwrap()
            .try_wait_one()
            .unwrap()
            .is_some()
    }
    fn wait(&self) {
        while self
            .listener
            .as_ref()
            .unwrap()
            .blocking_wait_one()
            .unwrap()
            .is_none()
        {}
    }
}

extern "C" {
    fn sched_setaffinity(thread: i32, size: usize, cores: *const u64) -> i32;
}

fn pin(core: usize) {
    let cores = 1u64 << core;
    unsafe { sched_setaffinity(0, 8, &cores) };
}

fn meet(word: &str) {
    println!("{word}");
    io::stdout().flush().unwrap();
    io::stdin().read_line(&mut String::new()).unwrap();
}

fn answer(owner: &str, core: usize) {
    let node = NodeBuilder::new().create::<ipc::Service>().unwrap();
    let there = Event::named(&node, owner, "there", true);
    let over = Event::named(&node, owner, "over", true);
    let back = Event::named(&node, owner, "back", false);
    pin(core);
    back.set();
    loop {
        there.wait();
        if over.look() {
            return;
        }
        back.set();
    }
}

fn measure(work: &str, budget_ms: f64) {
    let owner = std::process::id().to_string();
    let node = NodeBuilder::new().create::<ipc::Service>().unwrap();
    let trips = work.starts_with("ping_pong");
    let there = Event::named(&node, &owner, "there", !trips);
    let over = Event::named(&node, &owner, "over", false);
    let back = Event::named(&node, &owner, "back", true);
    let mut partner = None;
    if trips {
        let core = if work == "ping_pong_1_core" { "0" } else { "1" };
        let this = std::env::current_exe().unwrap();
        partner = Some(
            std::process::Command::new(this)
                .args(["answer", &owner, core])
                .spawn()
                .unwrap(),
        );
        back.wait();
    }
    pin(0);
    let size = if trips { 8 } else { 200 };
    let mut times = Vec::new();
    meet("ready");
    let begin = Instant::now();
    while times.is_empty() || begin.elapsed().as_secs_f64() * 1e3 < budget_ms {
        let start = Instant::now();
        for _ in 0..size {
            if trips {
                there.set();
                back.wait();
            } else if work == "look" {
                there.look();
            } else {
                there.set();
                there.wait();
            }
        }
        times.push(start.elapsed().as_nanos());
    }
    meet("done");
    if let Some(mut process) = partner {
        over.set();
        there.set();
        process.wait().unwrap();
    } else if there.look() {
        println!("wrong as many takes as sets leave the event unset");
    }
    let words: Vec<String> = times.iter().map(u128::to_string).collect();
    println!("batch time {size} {}", words.join(" "));
    println!("operations {}", size * times.len());
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        ["answer", owner, core] => answer(owner, core.parse().unwrap()),
        [_, budget_ms, work] => {
            measure(work.trim_start_matches("work="), budget_ms.parse().unwrap())
        }
        _ => std::process::exit(2),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! The events of iceoryx2 between processes, in the scenario of the lab; worker.py says how it is called.

use std::io::{self, Write};
use std::time::Instant;

use iceoryx2::port::{listener::Listener, notifier::Notifier};
use iceoryx2::prelude::*;

const OVER: EventId = EventId::new(1);

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
    /// A set that says that the run is over.
    fn end(&self) {
        self.notifier.notify_with_custom_event_id(OVER).unwrap();
    }
    fn look(&self) -> bool {
        self.listener
            .as_ref()
            .unwrap()
            .try_wait_one()
            .unwrap()
            .is_some()
    }
    fn wait(&self) -> EventId {
        loop {
            if let Some(which) = self.listener.as_ref().unwrap().blocking_wait_one().unwrap() {
                return which;
            }
        }
    }
}

extern "C" {
    fn sched_getaffinity(thread: i32, size: usize, cores: *mut u64) -> i32;
    fn sched_setaffinity(thread: i32, size: usize, cores: *const u64) -> i32;
    fn prctl(option: i32, ...) -> i32;
}

/// To the first of the cores that this process may use, or the second.
fn pin(nth: usize) -> bool {
    let mut allowed = [0u64; 16];
    unsafe { sched_getaffinity(0, 128, allowed.as_mut_ptr()) };
    let mut cores = (0..1024).filter(|core| allowed[core / 64] >> (core % 64) & 1 == 1);
    let core = cores.nth(nth).expect("this work needs two cores");
    let mut only = [0u64; 16];
    only[core / 64] = 1 << (core % 64);
    unsafe { sched_setaffinity(0, 128, only.as_ptr()) == 0 }
}

fn meet(word: &str) {
    println!("{word}");
    io::stdout().flush().unwrap();
    io::stdin().read_line(&mut String::new()).unwrap();
}

fn answer(owner: &str, core: usize) {
    unsafe { prctl(1, 9u64) }; // PR_SET_PDEATHSIG: SIGKILL
    let node = NodeBuilder::new().create::<ipc::Service>().unwrap();
    let there = Event::named(&node, owner, "there", true);
    let back = Event::named(&node, owner, "back", false);
    pin(core);
    back.set();
    while there.wait() != OVER {
        back.set();
    }
}

fn measure(work: &str, budget_ms: f64) {
    let owner = std::process::id().to_string();
    let node = NodeBuilder::new().create::<ipc::Service>().unwrap();
    let trips = work.starts_with("ping_pong");
    let there = Event::named(&node, &owner, "there", !trips);
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
    let pinned = pin(0);
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
        there.end();
        process.wait().unwrap();
    } else if there.look() {
        println!("wrong as many takes as sets leave the event unset");
    }
    let words: Vec<String> = times.iter().map(u128::to_string).collect();
    println!("batch time {size} {}", words.join(" "));
    println!("operations {}", size * times.len());
    if !pinned {
        println!("note not permitted to pin threads to cores");
    }
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

// SPDX-License-Identifier: Apache-2.0
//! Threads of Rust that wait for an event or a semaphore.

mod tocsin;

use std::time::{Duration, Instant};

static JOB: tocsin::AutoEvent = tocsin::AutoEvent::new();

fn main() {
    assert_eq!(tocsin::api_version(), tocsin::API_VERSION);
    let permits = tocsin::Semaphore::new();
    let done = tocsin::AutoEvent::new();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let sources = [JOB.source(), permits.source()];
            assert_eq!(tocsin::wait_any(&sources, None).unwrap(), Some(1));
            done.set();
            assert_eq!(tocsin::wait_any(&sources, None).unwrap(), Some(0));
            done.set();
        });
        permits.release(1).unwrap();
        assert!(done.wait(None));
        JOB.set();
        assert!(done.wait(None));
    });
    let before = Instant::now();
    assert!(!JOB.wait(Some(Duration::from_millis(5))));
    assert!(before.elapsed() >= Duration::from_millis(5));
    assert!(!permits.acquire(1, Some(Duration::ZERO)).unwrap());
    let refused = permits.release(u32::MAX).unwrap_err();
    assert!(refused.0.contains("tocsin_semaphore_release"));
    assert!(tocsin::wait_any(&[], None).is_err());
    println!("all well");
}

// SPDX-License-Identifier: Apache-2.0
//! Contestants from the Rust world. Every object lives in the storage of its C++ adapter (contestants/rust.hpp):
//! `*_new` constructs it there, `*_drop` destroys it, and both sides state its size.

use std::mem::size_of;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// `new` and `drop` of a type, under C names; asserts the size that the adapter relies on.
macro_rules! object {
    ($type:ty, $bytes:literal, $new:ident, $make:expr, $drop:ident) => {
        const _: () = assert!(size_of::<$type>() == $bytes);
        #[no_mangle]
        pub unsafe extern "C" fn $new(storage: *mut $type) {
            ptr::write(storage, $make)
        }
        #[no_mangle]
        pub unsafe extern "C" fn $drop(storage: *mut $type) {
            ptr::drop_in_place(storage)
        }
    };
}

mod parking {
    use super::*;
    use parking_lot::{Condvar, Mutex};
    use parking_lot_core::{ParkToken, UnparkToken};
    use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicU8};

    pub struct Monitor {
        mutex: Mutex<()>,
        changed: Condvar,
    }
    object!(Monitor, 16, lab_monitor_new, Monitor { mutex: Mutex::new(()), changed: Condvar::new() }, lab_monitor_drop);

    #[no_mangle]
    pub unsafe extern "C" fn lab_monitor_lock(it: &Monitor) {
        std::mem::forget(it.mutex.lock())
    }
    #[no_mangle]
    pub unsafe extern "C" fn lab_monitor_unlock(it: &Monitor) {
        it.mutex.force_unlock()
    }
    /// Called under the lock; false if the time has passed.
    #[no_mangle]
    pub unsafe extern "C" fn lab_monitor_sleep(it: &Monitor, nanoseconds: u64) -> bool {
        let mut held = it.mutex.make_guard_unchecked();
        let in_time = if nanoseconds == u64::MAX {
            it.changed.wait(&mut held);
            true
        } else {
            !it.changed.wait_for(&mut held, Duration::from_nanos(nanoseconds)).timed_out()
        };
        std::mem::forget(held);
        in_time
    }
    #[no_mangle]
    pub extern "C" fn lab_monitor_wake_one(it: &Monitor) {
        it.changed.notify_one();
    }
    #[no_mangle]
    pub extern "C" fn lab_monitor_wake_all(it: &Monitor) {
        it.changed.notify_all();
    }

    object!(Mutex<()>, 1, lab_mutex_new, Mutex::new(()), lab_mutex_drop);

    #[no_mangle]
    pub extern "C" fn lab_mutex_lock(it: &Mutex<()>) {
        std::mem::forget(it.lock())
    }
    #[no_mangle]
    pub unsafe extern "C" fn lab_mutex_unlock(it: &Mutex<()>) {
        it.force_unlock()
    }
    #[no_mangle]
    pub unsafe extern "C" fn lab_mutex_unlock_fair(it: &Mutex<()>) {
        it.force_unlock_fair()
    }

    unsafe fn holds(word: *const u8, bytes: u32, expected: u64) -> bool {
        match bytes {
            1 => u64::from((*word.cast::<AtomicU8>()).load(Ordering::Acquire)) == expected,
            2 => u64::from((*word.cast::<AtomicU16>()).load(Ordering::Acquire)) == expected,
            4 => u64::from((*word.cast::<AtomicU32>()).load(Ordering::Acquire)) == expected,
            _ => (*word.cast::<AtomicU64>()).load(Ordering::Acquire) == expected,
        }
    }

    /// Sleeps while the word of that many bytes has that value.
    #[no_mangle]
    pub unsafe extern "C" fn lab_park(word: *const u8, bytes: u32, expected: u64) {
        while holds(word, bytes, expected) {
            parking_lot_core::park(
                word as usize,
                || holds(word, bytes, expected),
                || {},
                |_, _| {},
                ParkToken(0),
                None,
            );
        }
    }
    #[no_mangle]
    pub unsafe extern "C" fn lab_unpark_one(word: *const u8) {
        parking_lot_core::unpark_one(word as usize, |_| UnparkToken(0));
    }
    #[no_mangle]
    pub unsafe extern "C" fn lab_unpark_all(word: *const u8) {
        parking_lot_core::unpark_all(word as usize, UnparkToken(0));
    }
}

mod listened {
    use super::*;
    use event_listener::{Event, Listener};

    pub struct Flag {
        changed: Event,
        set: AtomicBool,
    }
    object!(Flag, 16, lab_flag_new, Flag { changed: Event::new(), set: AtomicBool::new(false) }, lab_flag_drop);

    fn take(it: &Flag) -> bool {
        it.set.load(Ordering::Relaxed) && it.set.swap(false, Ordering::Acquire)
    }
    fn look(it: &Flag) -> bool {
        it.set.load(Ordering::Acquire)
    }
    fn wait_until(it: &Flag, done: impl Fn(&Flag) -> bool) {
        while !done(it) {
            let listener = it.changed.listen();
            if done(it) {
                return;
            }
            listener.wait();
        }
    }

    /// `count`: how many to wake, one or all.
    #[no_mangle]
    pub extern "C" fn lab_flag_set(it: &Flag, count: usize) {
        it.set.store(true, Ordering::Release);
        it.changed.notify(count);
    }
    #[no_mangle]
    pub extern "C" fn lab_flag_reset(it: &Flag) {
        it.set.store(false, Ordering::Relaxed)
    }
    #[no_mangle]
    pub extern "C" fn lab_flag_is_set(it: &Flag) -> bool {
        look(it)
    }
    #[no_mangle]
    pub extern "C" fn lab_flag_take(it: &Flag) -> bool {
        take(it)
    }
    #[no_mangle]
    pub extern "C" fn lab_flag_wait(it: &Flag) {
        wait_until(it, look)
    }
    #[no_mangle]
    pub extern "C" fn lab_flag_wait_and_take(it: &Flag) {
        wait_until(it, take)
    }
}

mod rs {
    use super::*;
    use rsevents::{AutoResetEvent, Awaitable, EventState, ManualResetEvent};

    object!(AutoResetEvent, 1, lab_auto_new, AutoResetEvent::new(EventState::Unset), lab_auto_drop);
    #[no_mangle]
    pub extern "C" fn lab_auto_set(it: &AutoResetEvent) {
        it.set()
    }
    #[no_mangle]
    pub extern "C" fn lab_auto_wait(it: &AutoResetEvent) {
        it.wait()
    }
    #[no_mangle]
    pub extern "C" fn lab_auto_wait_for(it: &AutoResetEvent, nanoseconds: u64) -> bool {
        if nanoseconds == 0 { it.wait0() } else { it.wait_for(Duration::from_nanos(nanoseconds)) }
    }

    object!(ManualResetEvent, 1, lab_manual_new, ManualResetEvent::new(EventState::Unset), lab_manual_drop);
    #[no_mangle]
    pub extern "C" fn lab_manual_set(it: &ManualResetEvent) {
        it.set()
    }
    #[no_mangle]
    pub extern "C" fn lab_manual_reset(it: &ManualResetEvent) {
        it.reset()
    }
    #[no_mangle]
    pub extern "C" fn lab_manual_is_set(it: &ManualResetEvent) -> bool {
        it.wait0()
    }
    #[no_mangle]
    pub extern "C" fn lab_manual_wait(it: &ManualResetEvent) {
        it.wait()
    }
    #[no_mangle]
    pub extern "C" fn lab_manual_wait_for(it: &ManualResetEvent, nanoseconds: u64) -> bool {
        it.wait_for(Duration::from_nanos(nanoseconds))
    }
}

mod waiting {
    use std::sync::atomic::AtomicU32;

    #[no_mangle]
    pub extern "C" fn lab_atomic_wait(word: &AtomicU32, expected: u32) {
        atomic_wait::wait(word, expected)
    }
    #[no_mangle]
    pub extern "C" fn lab_atomic_wake_one(word: &AtomicU32) {
        atomic_wait::wake_one(word)
    }
    #[no_mangle]
    pub extern "C" fn lab_atomic_wake_all(word: &AtomicU32) {
        atomic_wait::wake_all(word)
    }
}

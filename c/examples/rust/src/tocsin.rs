// SPDX-License-Identifier: Apache-2.0
//! A part of tocsin for Rust. The declarations at the top are those of tocsin.h; the types below them are safe.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::marker::PhantomData;
use std::ptr;
use std::time::Duration;

#[repr(C)]
struct Deadline {
    clock: c_int,
    nanoseconds: i64,
}
#[repr(C)]
struct Limits {
    until: Deadline,
    stop: *const c_void,
    spin_mode: c_int,
    spin_nanoseconds: u32,
    order: c_int,
    stop_first: bool,
}
#[repr(C)]
union Of {
    object: *mut c_void,
    deadline: std::mem::ManuallyDrop<Deadline>,
}
#[repr(C)]
struct RawSource {
    kind: c_int,
    asked: u32,
    of: Of,
}
#[repr(C)]
struct AnyResult {
    index: usize,
    found: u32,
}

const OK: c_int = 0;
const FROM_NOW: c_int = 1;
const SOURCE_AUTO_EVENT: c_int = 2;
const SOURCE_SEMAPHORE: c_int = 3;
pub const API_VERSION: u32 = 1;

extern "C" {
    fn tocsin_api_version() -> u32;
    fn tocsin_last_error() -> *const c_char;
    fn tocsin_auto_event_set(event: *mut u8) -> c_int;
    fn tocsin_auto_event_wait(event: *mut u8, how: *const Limits) -> c_int;
    fn tocsin_semaphore_release(semaphore: *mut u32, permits: u32) -> c_int;
    fn tocsin_semaphore_acquire(semaphore: *mut u32, permits: u32, how: *const Limits) -> c_int;
    fn tocsin_wait_any(sources: *const RawSource, count: usize, how: *const Limits, result: *mut AnyResult) -> c_int;
}

pub fn api_version() -> u32 {
    unsafe { tocsin_api_version() }
}

#[derive(Debug)]
pub struct Error(pub String);

/// Whether the call has done what was asked for: false for a timeout.
fn checked(status: c_int) -> Result<bool, Error> {
    if status < 0 {
        let text = unsafe { CStr::from_ptr(tocsin_last_error()) };
        return Err(Error(text.to_string_lossy().into_owned()));
    }
    Ok(status == OK)
}

fn within(longest: Option<Duration>) -> Limits {
    let until = match longest {
        None => Deadline { clock: 0, nanoseconds: 0 },
        Some(time) => Deadline { clock: FROM_NOW, nanoseconds: time.as_nanos().try_into().unwrap_or(i64::MAX) },
    };
    Limits { until, stop: ptr::null(), spin_mode: 0, spin_nanoseconds: 0, order: 0, stop_first: false }
}

/// A token: each set releases one thread. One byte; it is only ever used by reference, so it does not move while
/// anybody waits.
#[derive(Default)]
pub struct AutoEvent(UnsafeCell<u8>);
unsafe impl Sync for AutoEvent {}

impl AutoEvent {
    pub const fn new() -> Self {
        Self(UnsafeCell::new(0))
    }
    pub fn set(&self) {
        unsafe { tocsin_auto_event_set(self.0.get()) };
    }
    pub fn wait(&self, longest: Option<Duration>) -> bool {
        checked(unsafe { tocsin_auto_event_wait(self.0.get(), &within(longest)) }).unwrap()
    }
    pub fn source(&self) -> Source<'_> {
        Source::new(SOURCE_AUTO_EVENT, self.0.get().cast())
    }
}

#[derive(Default)]
pub struct Semaphore(UnsafeCell<u32>);
unsafe impl Sync for Semaphore {}

impl Semaphore {
    pub const fn new() -> Self {
        Self(UnsafeCell::new(0))
    }
    pub fn release(&self, permits: u32) -> Result<(), Error> {
        checked(unsafe { tocsin_semaphore_release(self.0.get(), permits) }).map(|_| ())
    }
    pub fn acquire(&self, permits: u32, longest: Option<Duration>) -> Result<bool, Error> {
        checked(unsafe { tocsin_semaphore_acquire(self.0.get(), permits, &within(longest)) })
    }
    pub fn source(&self) -> Source<'_> {
        Source::new(SOURCE_SEMAPHORE, self.0.get().cast())
    }
}

#[repr(transparent)]
pub struct Source<'a>(RawSource, PhantomData<&'a ()>);

impl Source<'_> {
    fn new(kind: c_int, object: *mut c_void) -> Self {
        Self(RawSource { kind, asked: 0, of: Of { object } }, PhantomData)
    }
}

/// The index of the source that was taken, or None if the time passed first.
pub fn wait_any(sources: &[Source<'_>], longest: Option<Duration>) -> Result<Option<usize>, Error> {
    let mut result = AnyResult { index: usize::MAX, found: 0 };
    let taken = checked(unsafe {
        tocsin_wait_any(sources.as_ptr().cast(), sources.len(), &within(longest), &mut result)
    })?;
    Ok(taken.then_some(result.index))
}

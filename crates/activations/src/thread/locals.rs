//! The locals of a thread: values that it makes when it first asks for them, and drops when it
//! ends. Their keys are in `api/thread_local.rs`.
//!
//! A thread keeps its values in a list, which is searched from the end: one comparison for each
//! value. Why not a number for each key: the first use by any thread would have to agree on it with
//! all others, and each thread's table would be as long as there are keys in the program.
//!
//! ```text
//! no entry ── start ──► Coming ── finish ──► Ready ── the thread ends ──► Gone
//!     ▲                   │ making it panics
//!     └───── forget ──────┘
//! ```
//!
//! # Invariants
//!
//! 1. Only the thread itself touches its list, while it runs. The list is not kept borrowed while
//!    the user's code runs.
//! 2. A value stays where it is until the thread has ended. So a reference to it may be handed to
//!    code that makes other values.

use core::any::Any;
use core::cell::RefCell;
use core::ptr::NonNull;

use super::panics::{Payload, catch_drop, discard};

/// The value of one key.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    /// It is being made.
    Coming,
    Ready(NonNull<dyn Any>),
    /// It was dropped, because the thread ends.
    Gone,
}

/// The locals of a thread: keys, by their addresses, and values.
pub(crate) struct Locals(RefCell<Vec<(usize, Value)>>);

impl Locals {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Returns the value of a key; `None` if there has been none.
    pub(crate) fn get(&self, key: usize) -> Option<Value> {
        let list = self.0.borrow();
        list.iter().rev().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    /// Says that the value of a key is being made.
    pub(crate) fn start(&self, key: usize) {
        self.set(key, Value::Coming);
    }

    /// Stores the value of a key. Returns where it is.
    pub(crate) fn finish(&self, key: usize, value: Box<dyn Any>) -> NonNull<dyn Any> {
        let value = NonNull::from(Box::leak(value));
        self.set(key, Value::Ready(value));
        value
    }

    /// Forgets that the value of a key was being made. The next use tries again.
    pub(crate) fn forget(&self, key: usize) {
        self.0.borrow_mut().retain(|(known, _)| *known != key);
    }

    fn set(&self, key: usize, value: Value) {
        let mut list = self.0.borrow_mut();
        match list.iter_mut().rev().find(|(known, _)| *known == key) {
            Some((_, place)) => *place = value,
            None => list.push((key, value)),
        }
    }

    /// Ends the thread: drops its values, the youngest first, and the values that these drops make.
    /// Returns the payload of the first drop that panics.
    pub(crate) fn end(&self) -> Option<Payload> {
        if self.0.borrow().is_empty() {
            return None;
        }
        let mut first = None;
        while let Some(value) = self.take_youngest() {
            // SAFETY: `finish` leaked it, and it was taken out of its only place.
            let value = unsafe { Box::from_raw(value.as_ptr()) };
            match (catch_drop(value), &first) {
                (None, _) => {}
                (Some(payload), None) => first = Some(payload),
                (Some(payload), Some(_)) => discard(payload),
            }
        }
        self.0.take();
        first
    }

    fn take_youngest(&self) -> Option<NonNull<dyn Any>> {
        let mut list = self.0.borrow_mut();
        list.iter_mut().rev().find_map(|(_, place)| match *place {
            Value::Ready(value) => {
                *place = Value::Gone;
                Some(value)
            }
            Value::Coming | Value::Gone => None,
        })
    }
}

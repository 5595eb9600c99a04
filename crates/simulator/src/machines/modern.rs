//! Servers of today: one socket, as this project's own measurements have it, and two, as others have published.

use crate::Time;
use crate::machine::{Directory, Machine, Memory, Scheduling};

/// What `stanchion machine` measures of a machine, and [`modern_measured`] makes a description of.
///
/// The default is a round estimate of a server of today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// A load that hits.
    pub load: Time,
    /// An atomic swap whose line nobody else wants.
    pub swap: Time,
    /// Handing a word to another processor, one way: it invalidates the other's copy, and the other fetches the line.
    pub transfer: Time,
    /// Two threads of one processor handing it to each other, one way.
    pub switch: Time,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            load: Time::nanos(1),
            swap: Time::nanos(6),
            transfer: Time::nanos(100),
            switch: Time::nanos(2_000),
        }
    }
}

/// One socket with the default measurements.
#[must_use]
pub fn modern(processors: usize) -> Machine {
    modern_measured(processors, Measured::default())
}

/// One socket that measures so.
///
/// A hand-over is an upgrade by the writer and a fetch by the reader, which are taken to be equally long. A line from the shared cache is
/// taken to come in half the time of one from another's cache.
#[must_use]
pub fn modern_measured(processors: usize, measured: Measured) -> Machine {
    let Measured { load, swap, transfer, switch } = measured;
    let half = Time::picos(transfer.as_picos() / 2).max(load);
    let quarter = Time::picos(transfer.as_picos() / 4).max(load);
    Machine {
        name: "modern".into(),
        processors,
        memory: Memory::Directory(Directory {
            line: 64,
            sockets: 1,
            hit: load,
            exchange: swap - load,
            memory: quarter,
            near: half,
            // There is no other socket.
            far: half,
            upgrade: half,
            far_upgrade: half,
            // Estimated: the shared cache looks a line up every few cycles.
            line_busy: Time::nanos(2).min(quarter),
            link_busy: Time::ZERO,
        }),
        scheduling: scheduling(switch),
        scale: 1.0,
        release_by_exchange: false,
    }
}

/// Going to sleep and waking up are each about a switch and a system call.
fn scheduling(switch: Time) -> Scheduling {
    Scheduling {
        // Linux's base slice with several processors.
        quantum: Time::millis(3),
        switch,
        park: switch,
        wake: switch,
        wakeup: switch,
        // Estimated: a thread of the system.
        spawn: Time::micros(20),
        applications: 1,
    }
}

/// Two sockets of 64 processors.
///
/// The latencies are those that David, Guerraoui and Trigonakis 2013 ("Everything you always wanted to know about synchronization but were afraid
/// to ask", table 2 and section 3) give in cycles for a Xeon with 2.13 GHz, within a socket and one hop away. The number of processors is that of
/// a server of today.
#[must_use]
pub fn modern_2s() -> Machine {
    Machine {
        name: "modern-2s".into(),
        processors: 128,
        memory: Memory::Directory(Directory {
            line: 64,
            sockets: 2,
            // 5 cycles.
            hit: Time::nanos(2),
            // Estimated: a locked instruction of some 20 cycles, less the hit.
            exchange: Time::nanos(7),
            // 44 cycles, the last-level cache.
            memory: Time::nanos(21),
            // A modified line: 109 cycles, and 289.
            near: Time::nanos(51),
            far: Time::nanos(136),
            // Writing a shared line: 116 cycles, and 318.
            upgrade: Time::nanos(54),
            far_upgrade: Time::nanos(149),
            // Estimated: the shared cache looks a line up every few cycles.
            line_busy: Time::nanos(2),
            // Estimated: a line and its header at some 13 GB/s.
            link_busy: Time::nanos(6),
        }),
        scheduling: scheduling(Time::micros(2)),
        scale: 1.0,
        release_by_exchange: false,
    }
}

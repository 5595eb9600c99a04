//! Servers of today: one socket, as this project's own measurements have it, and two, as others have published.

use crate::Time;
use crate::machine::{Directory, Machine, Memory, Scheduling};

/// What `stanchion machine` measures of a machine, and [`modern_measured`] makes a description of.
///
/// The default is what it printed on a virtual machine with two processors of an AMD EPYC (family 25, model 17), rounded. Others used the
/// processors: the transfer is from a run at a load average of 1.5, without optimization, because a busier machine disturbs it; the rest is from an
/// optimized build at 6. A processor that sleeps is dear to wake there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// "atomic load".
    pub load: Time,
    /// "atomic swap".
    pub swap: Time,
    /// "cache-line transfer": one way.
    pub transfer: Time,
    /// "futex round trip, same processor".
    pub futex_here: Time,
    /// "futex round trip, another processor".
    pub futex_there: Time,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            load: Time::picos(270),
            swap: Time::picos(2_040),
            transfer: Time::nanos(31),
            futex_here: Time::nanos(4_300),
            futex_there: Time::micros(63),
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
/// What is measured is whole hand-overs, so their parts are sums:
///
/// - A transfer one way is an upgrade by the writer and a fetch by the reader, taken to be equally long; a line from the shared cache comes as fast.
/// - Half a round trip on one processor is a wake, a park and a switch: the switch is taken to be half of it.
/// - Half a round trip between two is a wake, the time until the woken thread can run, and a switch; the park passes meanwhile.
///
/// Measurements that contradict one another (a swap faster than a load) give the nearest machine that can be, not an error.
#[must_use]
pub fn modern_measured(processors: usize, measured: Measured) -> Machine {
    let Measured { load, swap, transfer, futex_here, futex_there } = measured;
    let load = load.max(Time::picos(1));
    let way = part(transfer, 2).max(load);
    let (switch, call) = (part(futex_here, 4), part(futex_here, 8));
    Machine {
        name: "modern".into(),
        processors,
        memory: Memory::Directory(Directory {
            line: 64,
            sockets: 1,
            hit: load,
            exchange: swap - load,
            memory: way,
            near: way,
            // There is no other socket.
            far: way,
            upgrade: way,
            far_upgrade: way,
            line_busy: LOOKUP.min(way),
            link_busy: Time::ZERO,
        }),
        scheduling: scheduling(processors, switch, call, part(futex_there, 2) - call - switch),
        scale: 1.0,
        release_by_exchange: false,
    }
}

/// Estimated: the shared cache looks a line up every few cycles.
const LOOKUP: Time = Time::nanos(2);

fn part(time: Time, of: u64) -> Time {
    Time::picos(time.as_picos() / of)
}

fn scheduling(processors: usize, switch: Time, call: Time, wakeup: Time) -> Scheduling {
    // Linux since 6.6: 0.7 ms, times 1 and the logarithm of the processors, of which 8 count.
    let slices = 1 + processors.clamp(1, 8).ilog2();
    Scheduling {
        quantum: Time::micros(700) * u64::from(slices),
        switch,
        park: call,
        wake: call,
        wakeup,
        // Estimated: a thread of the system.
        spawn: Time::micros(20),
        applications: 1,
        // Estimated: a tenth of a slice.
        grace: Time::micros(70) * u64::from(slices),
        // Estimated: an interrupt from processor to processor, and what its handling differs by.
        interrupt: Time::micros(1),
        skew: Time::nanos(500),
        upcall: call + wakeup,
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
            line_busy: LOOKUP,
            // Estimated: a line and its header at some 13 GB/s.
            link_busy: Time::nanos(6),
        }),
        // Estimated: some 2 us for a switch or a wakeup and 1 us for a system call, without a hypervisor.
        scheduling: scheduling(128, Time::micros(2), Time::micros(1), Time::micros(2)),
        scale: 1.0,
        release_by_exchange: false,
    }
}

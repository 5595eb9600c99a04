//! Sequent Symmetry, Models A and B: Anderson, Lazowska and Levy 1989 (section numbers are theirs).
//!
//! Their processors are Intel 386 at 16 MHz; the bus has 64 bits and 10 MHz: 80 MB/s at its peak,
//! 53.3 sustained, which is three cycles for 16 bytes (Sequent's data sheet in netlib's
//! `machines/sequent2.tex`; the cycles are our sum).

use crate::Time;
use crate::machine::{Jitter, Machine, Memory, Processor, Scheduling, WriteBack, WriteThrough};

/// A cycle of the processor is 62.5 ns, and a read from the cache a bus cycle of the 386: two of
/// them.
const HIT: Time = Time::nanos(125);
/// 16 MHz, 3 million instructions a second.
const PROCESSOR: Processor =
    Processor { cycle: Time::picos(62_500), cycles_per_instruction: 5.33, compiler: None };
/// Address, then twice 8 bytes.
const LINE_BUS: Time = Time::nanos(300);
/// Address, then data.
const WORD_BUS: Time = Time::nanos(200);
/// Estimated: the bus, twice, around a memory of some 400 ns.
const MISS: Time = Time::nanos(1_000);
/// Table 3.1: acquiring and releasing a lock, two exchanges, takes 5.6 us.
const EXCHANGE: Time = Time::nanos(2_800);
/// Against some 14 ns for two exchanges on a processor of today.
const SCALE: f64 = 400.0;

/// Returns the scheduler. It is not in the paper: its programs had a processor for each process.
fn scheduling() -> Scheduling {
    Scheduling {
        // Estimated: Unix of those days.
        quantum: Time::millis(100),
        // Estimated, as are `park`, `wake` and `wakeup`: some hundred instructions each at 3
        // million a second.
        switch: Time::micros(100),
        park: Time::micros(50),
        wake: Time::micros(50),
        // In `wake`.
        kick: Time::ZERO,
        wakeup: Time::micros(50),
        // Section 3.6: what a thread costs in PRESTO, on the same machine.
        spawn: Time::micros(600),
        applications: 1,
        // Estimated, as all below: a tenth of a slice; some ten instructions; the switches of a
        // wake-up.
        grace: Time::millis(10),
        interrupt: Time::micros(10),
        skew: Time::micros(10),
        upcall: Time::micros(200),
    }
}

/// Not in the paper, like the scheduler.
fn jitter() -> Jitter {
    Jitter {
        // Estimated from the cycles: a request and its answer each wait for the bus's next one, up
        // to 100 ns, and the answer for the next of the 386's own, up to 125 ns. Half of that sum
        // on either side of the average.
        arbitration: Time::picos(162_500),
        // Memory chips of those days: 256 rows in 4 ms, and a row takes an access (`MISS`).
        refresh_period: Time::nanos(15_600),
        refresh: Time::nanos(400),
        // Unix of those days had 100 interrupts a second. Estimated: 150 instructions at 3 million
        // a second.
        tick_period: Time::millis(10),
        tick: Time::micros(50),
    }
}

/// Symmetry Model A: caches that write through. The paper had 20 processors.
///
/// Uncontended, lock and unlock take 5.6 us together, because both are exchanges (table 3.1).
#[must_use]
pub fn symmetry_a(processors: usize) -> Machine {
    Machine {
        name: "symmetry-a".into(),
        processors,
        processor: PROCESSOR,
        memory: Memory::WriteThrough(WriteThrough {
            // Estimated: the unit of the bus in its sustained rate.
            line: 16,
            hit: HIT,
            miss: MISS,
            miss_bus: LINE_BUS,
            // Estimated: a bus cycle of the 386 and one of waiting for the bus's clock, then the
            // bus.
            write: Time::nanos(400),
            write_bus: WORD_BUS,
            exchange: EXCHANGE,
            // Section 4.1: the location is read, modified and written back, and locked until then.
            exchange_bus: LINE_BUS + WORD_BUS,
        }),
        scheduling: scheduling(),
        jitter: jitter(),
        scale: SCALE,
        pause: Time::ZERO,
        release_by_exchange: true,
        linked: false,
        membarrier: None,
    }
}

/// Symmetry Model B: the same processors and bus, caches that write back and invalidate (section
/// 4.6).
///
/// The paper has no measurement of it: its times are those of Model A where the hardware was the
/// same.
#[must_use]
pub fn symmetry_b(processors: usize) -> Machine {
    Machine {
        name: "symmetry-b".into(),
        processors,
        processor: PROCESSOR,
        memory: Memory::WriteBack(WriteBack {
            line: 16,
            hit: HIT,
            // So that an exchange of a line that is not in the cache takes as long as on Model A.
            exchange: EXCHANGE - MISS,
            miss: MISS,
            miss_bus: LINE_BUS,
            // Estimated: another cache answers as fast as memory.
            transfer: MISS,
            transfer_bus: LINE_BUS,
            // Estimated: as Model A's write, with nothing but an address.
            upgrade: Time::nanos(400),
            upgrade_bus: Time::nanos(100),
        }),
        scheduling: scheduling(),
        jitter: jitter(),
        scale: SCALE,
        pause: Time::ZERO,
        release_by_exchange: true,
        linked: false,
        membarrier: None,
    }
}

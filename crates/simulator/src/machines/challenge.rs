//! SGI Challenge: Michael and Scott 1997, section 4.

use crate::Time;
use crate::machine::{Jitter, Machine, Memory, Processor, Scheduling, WriteBack};

/// Twelve 100 MHz MIPS R4400. One of the paper's processors ran its scheduler, so its programs had
/// 11.
#[must_use]
pub fn challenge() -> Machine {
    Machine {
        name: "challenge".into(),
        // Section 4.
        processors: 12,
        processor: Processor {
            // Section 4: 100 MHz.
            cycle: Time::nanos(10),
            // Estimated: one instruction at a time, and misses of the first-level cache.
            cycles_per_instruction: 1.5,
            // Fitted to the seconds of one processor in figures 1 to 3: a link-based queue, stack
            // and skew heap under a preemption-safe lock.
            compiler: Some(2.6),
        },
        memory: Memory::WriteBack(WriteBack {
            // The line of the second-level cache.
            line: 128,
            // A cycle.
            hit: Time::nanos(10),
            // Estimated: LL, SC and the branch between them, without a miss. A line that is not
            // here is fetched by LL, and asked for again by SC: see `linked`.
            exchange: Time::nanos(100),
            // Estimated: about a microsecond, as measured on machines of this family.
            miss: Time::nanos(1_000),
            // 128 bytes at the bus's 1.2 GB/s.
            miss_bus: Time::nanos(107),
            // Estimated: memory, and the owner's cache before it.
            transfer: Time::nanos(1_200),
            transfer_bus: Time::nanos(107),
            // Estimated: half a miss, with nothing to move.
            upgrade: Time::nanos(500),
            // A transaction's five cycles of 47.6 MHz are its least.
            upgrade_bus: Time::nanos(105),
        }),
        scheduling: Scheduling {
            // Section 4.
            quantum: Time::millis(10),
            // The paper's preemption was a signal to the process; these are estimated from a system
            // call of some microseconds.
            switch: Time::micros(10),
            park: Time::micros(10),
            wake: Time::micros(10),
            // In `wake`.
            kick: Time::ZERO,
            wakeup: Time::micros(10),
            spawn: Time::micros(200),
            applications: 1,
            // Estimated, as all below: a tenth of a slice; some hundred instructions; the switches
            // of a wake-up.
            grace: Time::millis(1),
            interrupt: Time::micros(2),
            skew: Time::micros(2),
            upcall: Time::micros(30),
        },
        // Estimated, but for the cycles: a request waits for the bus's next one, 21 ns, and its
        // answer for the processor's, 10 ns, half of that on either side of the average. Memory
        // chips had 1,024 rows to refresh in 16 ms, and a row takes 150 ns. The system's clock had
        // 100 interrupts a second; a handler of some hundred instructions that miss takes 10 us.
        jitter: Jitter {
            arbitration: Time::picos(15_500),
            refresh_period: Time::nanos(15_600),
            refresh: Time::nanos(150),
            tick_period: Time::millis(10),
            tick: Time::micros(10),
        },
        // Estimated: a clock 35 times as fast today, and a half more for each cycle.
        scale: 50.0,
        pause: Time::ZERO,
        release_by_exchange: false,
        // Heinrich, "MIPS R4000 Microprocessor User's Manual", 1994: LL and SC.
        linked: true,
        membarrier: None,
    }
}

//! DEC Firefly: Karlin, Li, Manasse and Owicki 1991, section 3; its bus by Thacker, Stewart and
//! Satterthwaite 1988.

use crate::Time;
use crate::machine::{Jitter, Machine, Memory, Processor, Scheduling, Update};

/// Six CVAX processors; the seventh, a MicroVAX, does input and output only (section 3).
///
/// C, the paper's context switch, is 200 us (section 4): what a thread spends on going to sleep,
/// the switch, and what passes until it runs again. The waker's own time is not in C.
#[must_use]
pub fn firefly() -> Machine {
    Machine {
        name: "firefly".into(),
        // Section 3.
        processors: 6,
        // The CVAX does some three million instructions a second, of cycles of 100 ns.
        processor: Processor {
            cycle: Time::nanos(100),
            cycles_per_instruction: 3.33,
            compiler: None,
        },
        memory: Memory::Update(Update {
            // A longword.
            line: 4,
            // Estimated: two cycles of 100 ns.
            hit: Time::nanos(200),
            // Estimated: interlocked instructions of a VAX, without the bus.
            exchange: Time::nanos(1_000),
            // Four cycles of a 10 MHz bus, after as many for the cache and its arbitration
            // (estimated).
            miss: Time::nanos(800),
            miss_bus: Time::nanos(400),
            // The same bus, with less to wait for (estimated).
            write: Time::nanos(600),
            write_bus: Time::nanos(400),
        }),
        scheduling: Scheduling {
            // Estimated: the paper gives none.
            quantum: Time::millis(100),
            // With `park` and `wakeup` C = 200 us (section 4); how it divides is estimated.
            switch: Time::micros(50),
            park: Time::micros(100),
            // In `wake`.
            kick: Time::ZERO,
            wakeup: Time::micros(50),
            // Topaz's Signal-Wait on this machine, less `park` and a switch: Anderson, Bershad,
            // Lazowska and Levy 1992, table I, 441 us. Its benchmark runs on one processor, so
            // `wakeup` passes while the signaller falls asleep.
            wake: Time::micros(291),
            // Topaz's Null Fork on this machine, less its switch: Anderson, Bershad, Lazowska and
            // Levy 1992, table I, 948 us.
            spawn: Time::micros(900),
            applications: 1,
            // Estimated: a tenth of a slice; some ten instructions.
            grace: Time::millis(10),
            interrupt: Time::micros(10),
            skew: Time::micros(10),
            // Half of the 2.4 ms of Anderson, Bershad, Lazowska and Levy 1992, section 5.2, for a
            // signal and a wait through the kernel: two upcalls.
            upcall: Time::micros(1_200),
        },
        // Estimated, but for the periods: a request waits for the bus's next cycle and its answer
        // for the processor's, up to 100 ns and 200 ns, half of that on either side of the average.
        // Memory chips of those days had 256 rows to refresh in 4 ms, and a row takes as long as
        // the bus for a miss. The system's clock had 100 interrupts a second, of 150 instructions
        // at 3 million a second.
        jitter: Jitter {
            arbitration: Time::nanos(150),
            refresh_period: Time::nanos(15_600),
            refresh: Time::nanos(400),
            tick_period: Time::millis(10),
            tick: Time::micros(50),
        },
        // So that C is the 5 us of a machine of today, in proportion to which code of today chooses
        // its limits.
        scale: 40.0,
        pause: Time::ZERO,
        release_by_exchange: false,
        linked: false,
        membarrier: None,
    }
}

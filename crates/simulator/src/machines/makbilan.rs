//! Makbilan: Feitelson and Rudolph 1992, section 3.

use crate::Time;
use crate::machine::{Jitter, Machine, Memory, Processor, Scheduling, Uncached};

/// Ten of at most 15 boards with an Intel 386 at 20 MHz and memory of their own, on a Multibus II
/// (section 3.1).
///
/// "The processors have on-board caches, but they do not cache remote references" (section 3.1):
/// there is nothing to spin on but memory.
#[must_use]
pub fn makbilan() -> Machine {
    Machine {
        name: "makbilan".into(),
        // Section 3.1: "The experiments reported in the next section were run on a 10-processor
        // configuration."
        processors: 10,
        // Section 3.1: 20 MHz, 4 MIPS.
        processor: Processor {
            cycle: Time::nanos(50),
            cycles_per_instruction: 5.0,
            compiler: None,
        },
        memory: Memory::Uncached(Uncached {
            line: 64,
            // Estimated: an instruction at 4 MIPS (section 3.1) that goes to memory.
            local: Time::nanos(250),
            // Estimated: a bus of 10 MHz, asked and answered in single transfers, and the other
            // board's memory.
            remote: Time::nanos(1_500),
            bus: Time::nanos(800),
            module: Time::nanos(200),
            // Estimated: a locked cycle more.
            exchange: Time::nanos(250),
        }),
        scheduling: Scheduling {
            // Section 3.3.
            quantum: Time::millis(50),
            // Section 4: a context switch is 0.2 ms, and blocking 1.5 times that; how the rest
            // divides is estimated.
            switch: Time::micros(200),
            park: Time::micros(50),
            // In `wake`.
            kick: Time::ZERO,
            wakeup: Time::micros(50),
            wake: Time::micros(50),
            // Table 1, the default library.
            spawn: Time::micros(1_600),
            applications: 1,
            // Estimated: a tenth of a slice.
            grace: Time::millis(5),
            // Estimated: a message of the Multibus II, and some ten instructions. The handler's
            // work is in `switch`.
            interrupt: Time::micros(20),
            skew: Time::micros(10),
            // Estimated: the switches of a wake-up.
            upcall: Time::micros(300),
        },
        // Estimated, but for the cycles: a request to the board's own memory waits for the 386's
        // next one, up to 100 ns, half of that on either side of the average. Memory chips had 256
        // rows to refresh in 4 ms, and a row takes the module's time. The system's clock had 100
        // interrupts a second, of 150 instructions at 4 MIPS.
        jitter: Jitter {
            arbitration: Time::nanos(50),
            refresh_period: Time::nanos(15_600),
            refresh: Time::nanos(200),
            tick_period: Time::millis(10),
            tick: Time::micros(40),
        },
        // The value of the Symmetry, with a 386 of 16 MHz.
        scale: 320.0,
        pause: Time::ZERO,
        release_by_exchange: false,
        linked: false,
        membarrier: None,
    }
}

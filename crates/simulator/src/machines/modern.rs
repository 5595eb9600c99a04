//! Servers of today: one socket, as this project's own measurements have it, and two, as others
//! have published.

use crate::Time;
use crate::machine::{Directory, Jitter, Machine, Membarrier, Memory, Processor, Scheduling};

/// The figures that `stanchion machine` measures of a computer. [`modern_measured`] makes a
/// description of them.
///
/// The default is its output on a virtual machine with two processors of an AMD EPYC (family 25,
/// model 17). Other programs used the processors meanwhile, so each figure is the lowest of seven
/// runs of the optimized build, and those of lines are of one run. The host chooses where the
/// processors of a virtual machine lie, and the choice changed from minute to minute. In the run
/// that was taken they shared a cache; in the others they did not, and the fetch took 127 ns and
/// the upgrade 146. A processor that sleeps is dear to wake there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// "atomic load".
    pub load: Time,
    /// "atomic swap".
    pub swap: Time,
    /// "fetching a line that the other has written".
    pub fetch: Time,
    /// "exchanging a word of a line that the other has too".
    pub upgrade: Time,
    /// "exchanging a word that was read after the other wrote it" is about a swap, not about the
    /// line above.
    pub migrates: bool,
    /// "pause hint".
    pub pause: Time,
    /// "context switch, two threads that yield in turn".
    pub switch: Time,
    /// "futex round trip, same processor".
    pub round_trip: Time,
    /// "futex wake of a sleeper on another processor".
    pub wake: Time,
    /// "from there until it runs".
    pub wakeup: Time,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            load: Time::picos(270),
            swap: Time::picos(2_060),
            fetch: Time::picos(26_400),
            upgrade: Time::picos(37_100),
            migrates: true,
            pause: Time::picos(24_400),
            switch: Time::nanos(1_280),
            round_trip: Time::nanos(3_960),
            wake: Time::nanos(7_630),
            wakeup: Time::nanos(8_460),
        }
    }
}

/// One socket with the default measurements.
#[must_use]
pub fn modern(processors: usize) -> Machine {
    modern_measured(processors, Measured::default())
}

/// Returns a machine of one socket with these measurements.
///
/// Measurements and descriptions differ in these:
///
/// - An upgrade is measured as an exchange: the part that an exchange takes beyond a write is taken
///   off.
/// - A line that several processors have comes as fast as one that another has written.
/// - Half a round trip on one processor is a wake, a park and a switch: the first two are taken to
///   be equally long. If the sleeper is on another processor, the additional time of the wake is
///   the interrupt.
///
/// Interrupts are not among the measurements. Their times are those of a virtual machine with 80
/// processors on a Xeon with 2.5 GHz: one interrupt, and one to all, by "send IPI" hypercalls
/// (Linux, commit 4180bf1b655a, "KVM: X86: Implement "send IPI" hypercall", 2018: sums of 100,000
/// runs). The interrupted processor loses the 800 cycles of a trap (Baumann and others 2009, "The
/// multikernel", section 5.1). A barrier with one other running thread takes 2.8 us so. `cargo run
/// --release -p stanchion-machine --example costs` measures it on a computer: 1 to 2 us where the
/// default was measured, and 0.1 to 0.4 us without one.
///
/// Measurements that contradict one another (a swap faster than a load) give the nearest machine
/// that can be, not an error.
#[must_use]
pub fn modern_measured(processors: usize, measured: Measured) -> Machine {
    let Measured { load, swap, fetch, upgrade, migrates, pause, .. } = measured;
    let Measured { switch, round_trip, wake, wakeup, .. } = measured;
    let load = load.max(Time::picos(1));
    let fetch = fetch.max(load);
    let upgrade = (upgrade - (swap - load)).max(load);
    let call = part(part(round_trip, 2) - switch, 2);
    Machine {
        name: "modern".into(),
        processors,
        // Estimated: 3.7 GHz, and two or three instructions a cycle.
        processor: Processor {
            cycle: Time::picos(270),
            cycles_per_instruction: 0.4,
            compiler: None,
        },
        memory: Memory::Directory(Directory {
            line: 64,
            sockets: 1,
            hit: load,
            exchange: swap - load,
            memory: fetch,
            near: fetch,
            // There is no other socket.
            far: fetch,
            upgrade,
            far_upgrade: upgrade,
            migrates,
            line_busy: LOOKUP.min(fetch),
            link_busy: Time::ZERO,
        }),
        scheduling: scheduling(processors, [switch, call, wake - call, wakeup]),
        // What is measured are averages; their spread is not.
        jitter: Jitter::NONE,
        scale: 1.0,
        pause,
        release_by_exchange: false,
        linked: false,
        membarrier: Some(Membarrier {
            // Without another running thread: measured, 0.1 to 0.4 us (see the docs above).
            request: Time::nanos(250),
            // 75.7 us for 79 processors, 2.56 us for one: 73.1 us for 78 more.
            send: Time::nanos(940),
            // 2.29 us until the other's handler runs, the sending included.
            delivery: Time::nanos(1_350),
            // 800 cycles.
            interrupt: Time::nanos(216),
            // 2.56 us less 2.29 us.
            acknowledgement: Time::nanos(270),
        }),
    }
}

/// Estimated: the shared cache looks a line up every few cycles.
const LOOKUP: Time = Time::nanos(2);

fn part(time: Time, of: u64) -> Time {
    Time::picos(time.as_picos() / of)
}

fn scheduling(processors: usize, [switch, call, kick, wakeup]: [Time; 4]) -> Scheduling {
    // Linux since 6.6: 0.7 ms, times 1 and the logarithm of the processors, of which 8 count.
    let slices = 1 + processors.clamp(1, 8).ilog2();
    Scheduling {
        quantum: Time::micros(700) * u64::from(slices),
        switch,
        park: call,
        wake: call,
        kick,
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

/// Returns a machine of two sockets of 64 processors.
///
/// The latencies are those of David, Guerraoui and Trigonakis 2013 ("Everything you always wanted
/// to know about synchronization but were afraid to ask", table 2 and section 3), in cycles for a
/// Xeon with 2.13 GHz, within a socket and one hop away. The number of processors is that of a
/// server of today.
#[must_use]
pub fn modern_2s() -> Machine {
    Machine {
        name: "modern-2s".into(),
        processors: 128,
        // 2.13 GHz. Estimated: two instructions a cycle.
        processor: Processor {
            cycle: Time::picos(469),
            cycles_per_instruction: 0.5,
            compiler: None,
        },
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
            migrates: false,
            line_busy: LOOKUP,
            // Estimated: a line and its header at some 13 GB/s.
            link_busy: Time::nanos(6),
        }),
        // Estimated: some 2 us for a switch or a wakeup and 1 us for a system call, without a
        // hypervisor.
        scheduling: scheduling(128, [2, 1, 0, 2].map(Time::micros)),
        // The source has averages only.
        jitter: Jitter::NONE,
        scale: 1.0,
        // Estimated: some 10 cycles.
        pause: Time::nanos(5),
        release_by_exchange: false,
        linked: false,
        membarrier: Some(Membarrier {
            // Estimated: a system call that looks at the threads of 128 processors, mostly lines
            // that no processor has written since the last time.
            request: Time::nanos(300),
            // Estimated: four lines of the other processor (its thread, its queue of calls twice,
            // its acknowledgement), half of them from the other socket.
            send: Time::nanos(374),
            // Estimated, as `interrupt` of the scheduling.
            delivery: Time::micros(1),
            // 800 cycles (Baumann and others 2009, "The multikernel", section 5.1).
            interrupt: Time::nanos(375),
            // 289 cycles: a modified line of the other socket.
            acknowledgement: Time::nanos(136),
        }),
    }
}

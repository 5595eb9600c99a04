//! The parameters of the paper's programs that depend on the machine on which they run.

use stanchion_applications::{CVAX_INSTRUCTION_NS, hanoi, regsim};
use stanchion_simulator::{Machine, machines};

use stanchion_study::context::Context;
use stanchion_study::settings::spinning::Place;

/// The instructions for carrying a disk, and for drawing it or taking it away in one place, on a
/// display that is a bitmap in memory.
const CARRY: u64 = 300;
const DRAW: u64 = 100;

/// A fitted number: with so many, the optimum's share of Regsim's time is about the 9.9 % of the
/// paper's table 2 (`cargo study klmo91/table2 --machine firefly` prints it). Tables 3 and 4 are
/// fitted to nothing.
const BUCKETS: usize = 8;

/// Returns the parameters for this computer.
pub(crate) fn here(context: &Context) -> Place {
    let hanoi = hanoi::Options::default();
    Place {
        processors: context.processors.len(),
        seed: context.seed,
        pinned: true,
        instruction_ns: CVAX_INSTRUCTION_NS,
        carry_ns: hanoi.work_ns,
        draw_ns: hanoi.draw_ns,
        buckets: regsim::Options::default().buckets,
    }
}

/// Returns the parameters for a machine in virtual time. If it is faster than the Firefly, it
/// computes faster by as much, so that computing and waiting stay in proportion.
pub(crate) fn on(machine: &Machine, context: &Context) -> Place {
    let slower = machine.scale / machines::firefly().scale;
    let instructions = |number: u64| (number as f64 * CVAX_INSTRUCTION_NS as f64 * slower) as u64;
    Place {
        processors: machine.processors,
        seed: context.seed,
        pinned: false,
        instruction_ns: instructions(1),
        carry_ns: instructions(CARRY),
        draw_ns: instructions(DRAW),
        buckets: BUCKETS,
    }
}

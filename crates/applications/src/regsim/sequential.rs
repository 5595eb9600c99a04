//! The reference: one thread, no locks, another algorithm than the parallel one.
//!
//! Gates are evaluated once each in levelized order, so a single pass settles the circuit. That the
//! parallel simulator, which knows no order, arrives at the same values is the check of both.

use super::gate::Kind;
use super::netlist::{Net, Netlist};
use super::stimulus::{contribution, stimulus};
use core::time::Duration;
use stanchion_machine::clock;

/// A circuit that is stepped by hand.
///
/// ```
/// use stanchion_applications::regsim::{Netlist, sequential::Simulator};
/// // A flip-flop that halves its clock: q = 0, 1, 0, 1, ...
/// let toggle = Netlist::parse(b"OUTPUT(q)\nq = DFF(d)\nd = NOT(q)\n")?;
/// let mut simulator = Simulator::new(&toggle);
/// let mut seen = Vec::new();
/// for _ in 0..4 {
///     simulator.settle(|_| unreachable!("it has no inputs"));
///     seen.extend(simulator.outputs());
///     simulator.clock();
/// }
/// assert_eq!(seen, [false, true, false, true]);
/// # Ok::<(), stanchion_applications::regsim::ParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Simulator<'a> {
    /// The circuit.
    netlist: &'a Netlist,
    /// The value of each net.
    values: Vec<bool>,
    /// The inputs of the circuit.
    inputs: Vec<Net>,
    /// The flip-flops of the circuit.
    flip_flops: Vec<Net>,
    /// The values that the flip-flops will take over. Kept to save allocations.
    sampled: Vec<bool>,
}

impl<'a> Simulator<'a> {
    /// The circuit at power-up: flip-flops are 0.
    #[must_use]
    pub fn new(netlist: &'a Netlist) -> Self {
        Self {
            netlist,
            values: vec![false; netlist.len()],
            inputs: netlist.inputs().collect(),
            flip_flops: netlist.flip_flops().collect(),
            sampled: Vec::new(),
        }
    }

    /// Sets primary input number `i` to `input(i)` and evaluates all gates.
    pub fn settle(&mut self, mut input: impl FnMut(u32) -> bool) {
        for (ordinal, &net) in (0..).zip(&self.inputs) {
            self.values[net as usize] = input(ordinal);
        }
        for &net in self.netlist.levelized() {
            if let Kind::Gate(gate) = self.netlist.kind(net) {
                let inputs = self.netlist.reads(net).iter();
                self.values[net as usize] =
                    gate.evaluate(inputs.map(|&input| self.values[input as usize]));
            }
        }
    }

    /// The observed nets, in the order of the file.
    pub fn outputs(&self) -> impl Iterator<Item = bool> + '_ {
        self.netlist.outputs().iter().map(|&net| self.values[net as usize])
    }

    /// The end of the cycle: every flip-flop takes over its input, all at once.
    pub fn clock(&mut self) {
        let next =
            self.flip_flops.iter().map(|&net| self.values[self.netlist.reads(net)[0] as usize]);
        self.sampled.clear();
        self.sampled.extend(next);
        for (&net, &value) in self.flip_flops.iter().zip(&self.sampled) {
            self.values[net as usize] = value;
        }
    }
}

/// The result of a sequential run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Of all outputs over all cycles.
    pub checksum: u64,
    /// Gates evaluated.
    pub evaluations: u64,
    /// The time that it took.
    pub elapsed: Duration,
}

/// Runs `cycles` cycles with pseudo-random inputs.
///
/// ```
/// use stanchion_applications::regsim::{Netlist, circuits, sequential};
/// let s27 = Netlist::parse(circuits::S27.as_bytes())?;
/// assert_eq!(sequential::run(&s27, 1_000, 1).checksum, sequential::run(&s27, 1_000, 1).checksum);
/// # Ok::<(), stanchion_applications::regsim::ParseError>(())
/// ```
#[must_use]
pub fn run(netlist: &Netlist, cycles: u64, seed: u64) -> Outcome {
    let began = clock::now();
    let mut simulator = Simulator::new(netlist);
    let mut checksum = 0_u64;
    for cycle in 0..cycles {
        simulator.settle(|input| stimulus(seed, cycle, input));
        for (output, value) in (0..).zip(simulator.outputs()) {
            checksum = checksum.wrapping_add(contribution(cycle, output, value));
        }
        simulator.clock();
    }
    Outcome {
        checksum,
        evaluations: cycles * netlist.levelized().len() as u64,
        elapsed: Duration::from_nanos(clock::now().nanos_since(began)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regsim::circuits;

    /// s27 by hand, from the equations of its netlist.
    #[test]
    fn s27_behaves_as_its_equations() {
        let netlist = Netlist::parse(circuits::S27.as_bytes()).unwrap();
        let mut simulator = Simulator::new(&netlist);
        let (mut g5, mut g6, mut g7) = (false, false, false);
        let mut ones = 0;
        for cycle in 0..1_000 {
            let [g0, g1, g2, g3] = [0, 1, 2, 3].map(|input| stimulus(1, cycle, input));
            simulator.settle(|input| stimulus(1, cycle, input));
            let g14 = !g0;
            let g8 = g14 && g6;
            let g12 = !(g1 || g7);
            let g15 = g12 || g8;
            let g16 = g3 || g8;
            let g9 = !(g16 && g15);
            let g11 = !(g5 || g9);
            let g17 = !g11;
            let g10 = !(g14 || g11);
            let g13 = !(g2 || g12);
            assert_eq!(simulator.outputs().collect::<Vec<_>>(), [g17], "cycle {cycle}");
            ones += u32::from(g17);
            (g5, g6, g7) = (g10, g11, g13);
            simulator.clock();
        }
        assert!((1..1_000).contains(&ones), "the output must move to be worth comparing");
    }

    #[test]
    fn flip_flops_in_a_row_shift() {
        let text = b"INPUT(i)\nOUTPUT(c)\nc = DFF(b)\nb = DFF(a)\na = DFF(i)\n";
        let netlist = Netlist::parse(text).unwrap();
        let mut simulator = Simulator::new(&netlist);
        let mut seen = Vec::new();
        for cycle in 0..6 {
            simulator.settle(|_| cycle == 1);
            seen.extend(simulator.outputs());
            simulator.clock();
        }
        assert_eq!(seen, [false, false, false, false, true, false]);
    }

    #[test]
    fn no_cycles_no_sum() {
        let netlist = Netlist::parse(circuits::S27.as_bytes()).unwrap();
        let nothing = run(&netlist, 0, 1);
        assert_eq!((nothing.checksum, nothing.evaluations), (0, 0));
    }
}

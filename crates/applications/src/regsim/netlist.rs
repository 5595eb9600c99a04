//! A sequential circuit: its nets, their drivers, and the nets that are observed.
//!
//! A net is its driver: every driver has one output and every net one driver. So one dense number,
//! [`Net`], stands for both. The paper calls that an object.
//!
//! # Invariants
//!
//! 1. Every input of a driver and every output of the circuit is a net of the circuit.
//! 2. An input has no inputs, a flip-flop and a unary gate one, every other gate two or more.
//! 3. Without the flip-flops the circuit has no loop, so `order` exists: every gate once, after the
//!    gates it reads.
//! 4. There is at least one output.

use super::gate::{Gate, Kind};
use core::fmt;

/// A net of a [`Netlist`], dense from 0 in the order of definition.
pub type Net = u32;

/// A sequential circuit.
///
/// Made by [`parse`](Self::parse); printed as a `.bench` file that parses to an equal netlist.
///
/// ```
/// use stanchion_applications::regsim::{Netlist, circuits};
/// let s27 = Netlist::parse(circuits::S27.as_bytes())?;
/// assert_eq!((s27.inputs().count(), s27.outputs().len()), (4, 1));
/// assert_eq!((s27.flip_flops().count(), s27.gates().count()), (3, 10));
/// assert_eq!(Netlist::parse(s27.to_string().as_bytes())?, s27);
/// # Ok::<(), stanchion_applications::regsim::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Netlist {
    /// The names, by net.
    pub(super) names: Vec<String>,
    /// The drivers, by net.
    pub(super) drivers: Vec<Driver>,
    /// The outputs of the circuit.
    pub(super) outputs: Vec<Net>,
    /// The gates, each after those it reads (Invariant 3).
    pub(super) order: Vec<Net>,
    /// The number of levels of gates.
    pub(super) depth: usize,
}

/// The driver of a net.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Driver {
    /// The kind of driver.
    pub(super) kind: Kind,
    /// The nets that it reads.
    pub(super) inputs: Vec<Net>,
}

impl Netlist {
    /// Number of nets, which is the number of objects: inputs, flip-flops and gates.
    #[must_use]
    pub fn len(&self) -> usize {
        self.drivers.len()
    }

    /// Returns whether there are no nets: never, see invariant 4.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.drivers.is_empty()
    }

    /// Returns the driver of `net`.
    ///
    /// # Panics
    ///
    /// If the circuit has no such net.
    #[must_use]
    pub fn kind(&self, net: Net) -> Kind {
        self.drivers[net as usize].kind
    }

    /// The nets that the driver of `net` reads.
    ///
    /// # Panics
    ///
    /// If the circuit has no such net.
    #[must_use]
    pub fn reads(&self, net: Net) -> &[Net] {
        &self.drivers[net as usize].inputs
    }

    /// The name of `net` in the file.
    ///
    /// # Panics
    ///
    /// If the circuit has no such net.
    #[must_use]
    pub fn name(&self, net: Net) -> &str {
        &self.names[net as usize]
    }

    /// The primary inputs in the order of the file.
    pub fn inputs(&self) -> impl Iterator<Item = Net> + '_ {
        self.of_kind(|kind| kind == Kind::Input)
    }

    /// The flip-flops in the order of the file.
    pub fn flip_flops(&self) -> impl Iterator<Item = Net> + '_ {
        self.of_kind(|kind| kind == Kind::FlipFlop)
    }

    /// The gates in the order of the file.
    pub fn gates(&self) -> impl Iterator<Item = Net> + '_ {
        self.of_kind(|kind| matches!(kind, Kind::Gate(_)))
    }

    /// The observed nets in the order of the file.
    #[must_use]
    pub fn outputs(&self) -> &[Net] {
        &self.outputs
    }

    /// The gates in an order in which each follows those it reads.
    #[must_use]
    pub fn levelized(&self) -> &[Net] {
        &self.order
    }

    /// Gates on the longest path without a flip-flop: no evaluation settles in fewer steps, none
    /// takes more.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    fn of_kind(&self, wanted: impl Fn(Kind) -> bool) -> impl Iterator<Item = Net> {
        (0..).zip(&self.drivers).filter(move |(_, driver)| wanted(driver.kind)).map(|(net, _)| net)
    }
}

/// As a `.bench` file: every net in order, then the outputs.
impl fmt::Display for Netlist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, driver) in self.names.iter().zip(&self.drivers) {
            let word = match driver.kind {
                Kind::Input => {
                    writeln!(f, "INPUT({name})")?;
                    continue;
                }
                Kind::FlipFlop => "DFF",
                Kind::Gate(gate) => gate.word(),
            };
            write!(f, "{name} = {word}(")?;
            for (index, &input) in driver.inputs.iter().enumerate() {
                let comma = if index == 0 { "" } else { ", " };
                write!(f, "{comma}{}", self.name(input))?;
            }
            writeln!(f, ")")?;
        }
        for &output in &self.outputs {
            writeln!(f, "OUTPUT({})", self.name(output))?;
        }
        Ok(())
    }
}

impl Kind {
    /// Returns its name in a netlist.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Kind::Input => "INPUT",
            Kind::FlipFlop => "DFF",
            Kind::Gate(gate) => gate.word(),
        }
    }

    /// Returns the kind for the word after `=`.
    pub(super) fn from_word(word: &str) -> Option<Kind> {
        if word == "DFF" { Some(Kind::FlipFlop) } else { Gate::from_word(word).map(Kind::Gate) }
    }
}

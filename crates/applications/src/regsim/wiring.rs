//! The netlist as the parallel simulator needs it: which object reads which, both ways, in flat
//! arrays.

use super::gate::{Gate, Kind};
use super::netlist::{Net, Netlist};

/// Lists of nets, one after the other: list `i` is `items[starts[i]..starts[i + 1]]`.
#[derive(Debug)]
struct Lists {
    /// The beginning of each net's list in `items`.
    starts: Vec<usize>,
    /// The lists, one after another.
    items: Vec<Net>,
}

impl Lists {
    fn new<'a>(lists: impl Iterator<Item = &'a [Net]>) -> Self {
        let (mut starts, mut items) = (vec![0], Vec::new());
        for list in lists {
            items.extend_from_slice(list);
            starts.push(items.len());
        }
        Self { starts, items }
    }

    #[inline]
    fn get(&self, index: Net) -> &[Net] {
        let index = index as usize;
        &self.items[self.starts[index]..self.starts[index + 1]]
    }
}

/// The connections of a circuit.
#[derive(Debug)]
pub struct Wiring {
    /// The kind of each driver.
    kinds: Vec<Kind>,
    /// The number of an input among the inputs; unused for the others.
    numbers: Vec<u32>,
    /// The nets that each driver reads.
    reads: Lists,
    /// The nets that read each net.
    readers: Lists,
    /// The outputs of the circuit.
    outputs: Vec<Net>,
}

impl Wiring {
    /// The connections of `netlist`.
    #[must_use]
    pub fn new(netlist: &Netlist) -> Self {
        let nets = 0..netlist.len() as Net;
        let mut numbers = vec![0; netlist.len()];
        for (number, input) in (0..).zip(netlist.inputs()) {
            numbers[input as usize] = number;
        }
        let mut readers: Vec<Vec<Net>> = vec![Vec::new(); netlist.len()];
        for reader in nets.clone() {
            for &net in netlist.reads(reader) {
                // A gate may read a net twice; one entry is enough.
                if readers[net as usize].last() != Some(&reader) {
                    readers[net as usize].push(reader);
                }
            }
        }
        Self {
            kinds: nets.clone().map(|net| netlist.kind(net)).collect(),
            numbers,
            reads: Lists::new(nets.map(|net| netlist.reads(net))),
            readers: Lists::new(readers.iter().map(Vec::as_slice)),
            outputs: netlist.outputs().to_vec(),
        }
    }

    /// Number of objects.
    #[expect(clippy::len_without_is_empty, reason = "a netlist is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// The gate that drives `net`, if it is a gate.
    #[inline]
    #[must_use]
    pub fn gate(&self, net: Net) -> Option<Gate> {
        match self.kinds[net as usize] {
            Kind::Gate(gate) => Some(gate),
            Kind::Input | Kind::FlipFlop => None,
        }
    }

    /// Returns whether `net` changes only from cycle to cycle: an input or a flip-flop.
    #[inline]
    #[must_use]
    pub fn is_clocked(&self, net: Net) -> bool {
        self.gate(net).is_none()
    }

    /// The number of the input `net` among the inputs; `None` if it is no input.
    #[inline]
    #[must_use]
    pub fn input_number(&self, net: Net) -> Option<u32> {
        (self.kinds[net as usize] == Kind::Input).then(|| self.numbers[net as usize])
    }

    /// The nets that the driver of `net` reads.
    #[inline]
    #[must_use]
    pub fn reads(&self, net: Net) -> &[Net] {
        self.reads.get(net)
    }

    /// Returns the nets whose drivers read `net`, each once.
    #[inline]
    #[must_use]
    pub fn readers(&self, net: Net) -> &[Net] {
        self.readers.get(net)
    }

    /// The observed nets.
    #[must_use]
    pub fn outputs(&self) -> &[Net] {
        &self.outputs
    }
}

//! The functions of objects: the gates of a `.bench` netlist.

/// A combinational gate.
///
/// ```
/// use stanchion_applications::regsim::Gate;
/// assert!(Gate::Nand.evaluate([true, false]));
/// assert!(Gate::Xor.evaluate([true, true, true]));
/// assert_eq!(Gate::from_word("BUF"), Some(Gate::Buffer));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// All inputs.
    And,
    /// Not all inputs.
    Nand,
    /// Any input.
    Or,
    /// No input.
    Nor,
    /// An odd number of inputs.
    Xor,
    /// An even number of inputs.
    Xnor,
    /// Not its one input.
    Not,
    /// Its one input.
    Buffer,
}

impl Gate {
    /// Every gate, in the order of the documentation.
    pub const ALL: [Gate; 8] = [
        Gate::And,
        Gate::Nand,
        Gate::Or,
        Gate::Nor,
        Gate::Xor,
        Gate::Xnor,
        Gate::Not,
        Gate::Buffer,
    ];

    /// Returns its name in a netlist. `BUF` is read as well as `BUFF`, and written `BUFF`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Gate::And => "AND",
            Gate::Nand => "NAND",
            Gate::Or => "OR",
            Gate::Nor => "NOR",
            Gate::Xor => "XOR",
            Gate::Xnor => "XNOR",
            Gate::Not => "NOT",
            Gate::Buffer => "BUFF",
        }
    }

    /// The gate that a netlist writes as `word`, in upper case.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Gate> {
        if word == "BUF" {
            return Some(Gate::Buffer);
        }
        Gate::ALL.into_iter().find(|gate| gate.word() == word)
    }

    /// Returns whether it has exactly one input. The others have two or more.
    #[must_use]
    pub const fn is_unary(self) -> bool {
        matches!(self, Gate::Not | Gate::Buffer)
    }

    /// The output for `inputs`.
    ///
    /// Reads no further than it must: an AND that has seen a 0 is done. So an input that costs
    /// something to read, such as one behind a lock, is better given as a lazy iterator.
    #[inline]
    #[must_use]
    pub fn evaluate(self, inputs: impl IntoIterator<Item = bool>) -> bool {
        let mut inputs = inputs.into_iter();
        match self {
            Gate::And => inputs.all(|value| value),
            Gate::Nand => !inputs.all(|value| value),
            Gate::Or => inputs.any(|value| value),
            Gate::Nor => !inputs.any(|value| value),
            Gate::Xor => inputs.fold(false, |odd, value| odd ^ value),
            Gate::Xnor => !inputs.fold(false, |odd, value| odd ^ value),
            Gate::Not => !inputs.all(|value| value),
            Gate::Buffer => inputs.all(|value| value),
        }
    }
}

/// The driver of a net. Every net has one driver, and every driver one net: its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A primary input of the circuit: a new value each cycle.
    Input,
    /// A D flip-flop: takes over its input at the end of the cycle. 0 at power-up.
    FlipFlop,
    /// A gate.
    Gate(Gate),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_tables() {
        let table = |gate: Gate| {
            [[false, false], [false, true], [true, false], [true, true]]
                .map(|pair| gate.evaluate(pair))
        };
        assert_eq!(table(Gate::And), [false, false, false, true]);
        assert_eq!(table(Gate::Nand), [true, true, true, false]);
        assert_eq!(table(Gate::Or), [false, true, true, true]);
        assert_eq!(table(Gate::Nor), [true, false, false, false]);
        assert_eq!(table(Gate::Xor), [false, true, true, false]);
        assert_eq!(table(Gate::Xnor), [true, false, false, true]);
        assert_eq!([false, true].map(|value| Gate::Not.evaluate([value])), [true, false]);
        assert_eq!([false, true].map(|value| Gate::Buffer.evaluate([value])), [false, true]);
    }

    #[test]
    fn a_decided_gate_reads_no_further() {
        let mut read = 0;
        let inputs = [false, true, true].into_iter().inspect(|_| read += 1);
        assert!(Gate::Nand.evaluate(inputs));
        assert_eq!(read, 1);
    }

    #[test]
    fn words_lead_back() {
        for gate in Gate::ALL {
            assert_eq!(Gate::from_word(gate.word()), Some(gate));
        }
        assert_eq!(Gate::from_word("and"), None);
    }
}

//! Reasons for which waits are recorded with less than could be known.

/// A reason for which a shared table knows less of some waits: a system call that a process could
/// not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Loss {
    /// A process installed a filter of system calls. From then on it made no system calls to
    /// record.
    Filter,
    /// The list of its mappings could not be read. Names of locks were found without it.
    Mappings,
    /// The stack of a thread could not be read, so paths of calls ended at the first call.
    Stack,
    /// The switches of a thread could not be read, so it is a guess whether it blocked.
    Switches,
    /// The number of a process or a thread is not known, so its waits were not seen while they
    /// lasted.
    Numbers,
}

impl Loss {
    /// All losses, by their bits.
    const ALL: [Self; 5] =
        [Self::Filter, Self::Mappings, Self::Stack, Self::Switches, Self::Numbers];

    /// Returns the bit of the loss in a table.
    pub(super) const fn bit(self) -> u64 {
        1 << self as u8
    }

    /// Returns the losses with their bits set. Other bits are no losses.
    pub(super) fn of(bits: u64) -> Vec<Self> {
        Self::ALL.into_iter().filter(|loss| bits & loss.bit() != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_has_a_bit_of_its_own() {
        for loss in Loss::ALL {
            assert_eq!(Loss::of(loss.bit()), [loss]);
        }
        assert_eq!(Loss::of(u64::MAX), Loss::ALL);
        assert!(Loss::of(0).is_empty());
    }
}

//! The kinds of switches.

/// One switch of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Switch {
    /// Taken off its processor although it could run on: its time was up, a more urgent thread
    /// came, or it yielded.
    Preempted,
    /// Left its processor to wait for something.
    Blocked,
    /// Was given a processor.
    In,
}

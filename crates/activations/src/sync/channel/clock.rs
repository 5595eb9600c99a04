//! Channels with moments as messages: [`after`], [`at`], [`tick`] and [`never`].
//!
//! No thread and no timer stands behind them. A receive that finds no message waits until the next
//! moment, and looks again.

use core::time::Duration;

use stanchion_machine::clock::{Deadline, Instant, moment_after};

use super::Receiver;
use super::state::ChannelCore;

/// Where the messages of a channel come from that no sender sends.
pub(super) struct Clock<T> {
    /// The moment of the next message; `None` if none comes any more.
    next: Option<Instant>,
    /// The time from one message to the next; `None` if there is one message at most.
    period: Option<Duration>,
    /// Makes a message of its moment.
    message: fn(Instant) -> T,
}

impl<T> Clock<T> {
    /// When there is a message.
    pub(super) fn next(&self) -> Deadline {
        self.next.map_or(Deadline::NEVER, Deadline::at)
    }

    /// Returns whether there is a message now.
    pub(super) fn is_due(&self) -> bool {
        self.next().passed()
    }

    /// Takes the message if there is one.
    pub(super) fn take(&mut self) -> Option<T> {
        let moment = self.next.filter(|_| self.is_due())?;
        self.next = self.period.and_then(|period| {
            let now = moment_after(Duration::ZERO)?;
            // A message that is taken late by a period or more starts the row anew: moments do not
            // pile up.
            let next = moment.checked_add(period).filter(|&next| next > now);
            next.or_else(|| now.checked_add(period))
        });
        Some((self.message)(moment))
    }
}

/// A channel that has one message, the moment at which `time` has passed, from that moment on.
///
/// Costs no thread and no timer. All clones of the receiver together receive the message once.
/// Afterwards they wait for ever.
///
/// ```
/// use std::time::{Duration, Instant};
/// use stanchion_activations::select;
/// use stanchion_activations::sync::channel;
///
/// let begun = Instant::now();
/// let (_sender, answers) = channel::unbounded::<u32>();
/// let timeout = channel::after(Duration::from_millis(5));
/// select! {
///     recv(answers) -> answer => panic!("an answer came: {answer:?}"),
///     recv(timeout) -> _ => assert!(begun.elapsed() >= Duration::from_millis(5)),
/// }
/// ```
#[must_use]
pub fn after(time: Duration) -> Receiver<Instant> {
    clock(moment_after(time), None)
}

/// A channel that has one message, `moment`, from that moment on. See [`after`].
///
/// ```
/// use std::time::{Duration, Instant};
/// let moment = Instant::now() + Duration::from_millis(1);
/// assert_eq!(stanchion_activations::sync::channel::at(moment).recv(), Ok(moment));
/// ```
#[must_use]
pub fn at(moment: Instant) -> Receiver<Instant> {
    clock(Some(moment), None)
}

/// A channel that has a message each time `period` has passed, the first one after the first
/// period.
///
/// The messages are the moments at which they were due. At most one waits to be received: if it is
/// received late by a period or more, the next one is due a period after the receive. Costs no
/// thread and no timer.
///
/// ```
/// use std::time::Duration;
/// let ticks = stanchion_activations::sync::channel::tick(Duration::from_millis(1));
/// let (first, second) = (ticks.recv().unwrap(), ticks.recv().unwrap());
/// assert!(second - first >= Duration::from_millis(1));
/// ```
#[must_use]
pub fn tick(period: Duration) -> Receiver<Instant> {
    clock(moment_after(period), Some(period))
}

/// A channel that never has a message and never closes: what a [`select!`](crate::select) receives
/// from where a channel is optional.
///
/// ```
/// use stanchion_activations::sync::channel::{self, TryRecvError};
/// assert_eq!(channel::never::<u32>().try_recv(), Err(TryRecvError::Empty));
/// ```
#[must_use]
pub fn never<T>() -> Receiver<T> {
    Receiver { core: ChannelCore::new(Some(0), None) }
}

fn clock(next: Option<Instant>, period: Option<Duration>) -> Receiver<Instant> {
    let clock = Clock { next, period, message: |moment| moment };
    Receiver { core: ChannelCore::new(Some(1), Some(clock)) }
}

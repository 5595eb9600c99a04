//! Caches that own the lines that they write (MESI), lines at home in a directory, processors in
//! sockets: servers of today.
//!
//! The states are those of [`mesi`](super::mesi). There is no bus: requests for different lines do
//! not meet, but on the links between sockets. Requests for the same line are served one after
//! another by its directory.
//!
//! | access | line | takes | holds the line |
//! | --- | --- | --- | --- |
//! | read | own copy | `hit` | |
//! | write, exchange | own copy, the only one | `hit` | |
//! | any | owned by a processor of this socket | `near` | until it arrives |
//! | any | owned by a processor of another socket | `far`, over their link | until it arrives |
//! | read | shared, or in no cache | `memory` | `line_busy` |
//! | write, exchange | own copy, others too | `upgrade`, far `far_upgrade` | until it arrives |
//! | write, exchange | shared by others, or in no cache | see below | until it arrives |
//!
//! `far_upgrade` is for an upgrade over the link. The last takes the longer of `memory` and the
//! upgrade.
//!
//! If lines migrate, a read of a line that its owner has written takes it away from the owner. The
//! reader is then its owner, and has not written it. Writes of the old owner until the request
//! arrives count.
//!
//! # Stores
//!
//! A plain store goes to the processor's store buffer: the processor goes on after `hit`, and the
//! line comes meanwhile. An exchange waits until the processor's own stores before it have their
//! lines, as on x86; there, and not at the store, a processor pays for one. A fence waits likewise.
//! The buffer has no bound.

use super::lines::Lines;
use super::mesi::{Entry, State};
use super::queue::Queue;
use super::{Access, Done, Kind, Line};
use crate::Time;
use crate::machine::Directory;

/// The caches, the directory and the links.
#[derive(Debug)]
pub(crate) struct Caches {
    /// The times of the machine.
    times: Directory,
    /// The number of processors of a socket.
    socket: usize,
    /// One for each two sockets: the smaller's number times their count, and the larger's.
    links: Vec<Queue>,
    /// The time when the stores of each processor so far have their lines.
    drained: Vec<Time>,
    /// The states of the lines.
    pub(crate) lines: Lines<Entry>,
}

/// The needs of a request that is not a hit.
struct Need {
    /// The time that it takes.
    takes: Time,
    /// The socket with the processors that must answer, if it is not the requester's.
    far: Option<usize>,
    /// Set if the line comes from another processor's cache.
    transfer: bool,
}

impl Caches {
    pub(crate) fn new(times: &Directory, processors: usize) -> Self {
        Self {
            times: times.clone(),
            socket: processors / times.sockets,
            links: vec![Queue::default(); times.sockets * times.sockets],
            drained: vec![Time::ZERO; processors],
            lines: Lines::default(),
        }
    }

    pub(crate) fn access(&mut self, Access { at, processor, line, kind }: Access) -> Done {
        let times = &self.times;
        let entry = self.lines.entry(line);
        let (starts, beyond) = match kind {
            Kind::Read | Kind::Write => (at, Time::ZERO),
            Kind::Exchange => (at.max(self.drained[processor]), times.exchange),
        };
        if entry.hit(starts, processor, kind) {
            if times.migrates && kind != Kind::Read {
                entry.written_in_leaving(processor);
            }
            return Done { queued: starts - at, ..Done::hit(starts + times.hit + beyond) };
        }
        let owner = entry.owner();
        let Need { takes, far, transfer } = need(times, self.socket, entry, processor, kind);
        let migrates = times.migrates && kind == Kind::Read && entry.state == State::Modified;
        let invalidated =
            if migrates { entry.migrated(processor) } else { entry.moved(processor, kind) };
        let (mut begins, mut occupied) = (starts.max(entry.free), Time::ZERO);
        if let Some(far) = far {
            let own = processor / self.socket;
            let link = &mut self.links[own.min(far) * times.sockets + own.max(far)];
            occupied = times.link_busy;
            begins = begins.max(link.enter(at, occupied));
        }
        let arrives = begins + takes;
        let reads = kind == Kind::Read && !transfer;
        entry.free = if reads { begins + times.line_busy } else { arrives };
        if let Some(owner) = owner
            && kind != Kind::Write
        {
            // Estimated: a third of the way is the request's, the rest is the line's.
            entry.leaves(at, owner, begins + Time::picos(takes.as_picos() / 3));
        }
        let (done, queued) = if kind == Kind::Write {
            self.drained[processor] = self.drained[processor].max(arrives);
            (at + times.hit, Time::ZERO)
        } else {
            (arrives + beyond, begins - at)
        };
        // Other caches see the request when it is served, and then wait for the line.
        Done { at: done, reaches: begins, hit: false, transfer, invalidated, queued, occupied }
    }

    /// Returns when a fence is done. It takes as long as an exchange of a word that no other
    /// processor uses: compilers for x86 make one of it, or a fence that takes as long.
    pub(crate) fn fence(&self, processor: usize, at: Time) -> Time {
        at.max(self.drained[processor]) + self.times.hit + self.times.exchange
    }

    pub(crate) fn holds(&self, processor: usize, line: Line) -> bool {
        self.lines.get(line).is_some_and(|entry| entry.copies.contains(processor))
    }

    pub(crate) fn readable(&self, at: Time, processor: usize, line: Line) -> bool {
        self.lines.get(line).is_some_and(|entry| entry.readable(at, processor))
    }
}

fn need(times: &Directory, socket: usize, entry: &Entry, processor: usize, kind: Kind) -> Need {
    let own = processor / socket;
    if let Some(owner) = entry.owner() {
        let far = Some(owner / socket).filter(|&other| other != own);
        let takes = if far.is_some() { times.far } else { times.near };
        return Need { takes, far, transfer: true };
    }
    if kind == Kind::Read {
        return Need { takes: times.memory, far: None, transfer: false };
    }
    let far = entry.copies.iter().map(|other| other / socket).find(|&other| other != own);
    let upgrade = match far {
        Some(_) => times.far_upgrade,
        None if entry.copies.others(processor) > 0 => times.upgrade,
        None => Time::ZERO,
    };
    let present = entry.copies.contains(processor);
    let takes = if present { upgrade } else { times.memory.max(upgrade) };
    Need { takes, far, transfer: false }
}

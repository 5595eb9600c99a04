//! Accesses to shared words, and the names of words.

use super::clock::glance;
use super::run::is_running;
use crate::memory::Kind;
use crate::services::Kernel;
use crate::statistics::Activity;
use crate::world::{self, outside, suspend, synchronize, with};
use crate::{Machine, ThreadId, Time};

/// Charges an access of the word at `address`, and lets all that is earlier happen before it.
/// Nothing outside a run.
#[inline]
pub fn access(address: *const (), kind: Kind) {
    access_after(0, address, kind);
}

/// Charges hundredths of an instruction, which the code has executed since its last access, and
/// then an [`access`].
#[inline]
pub fn access_after(instructions: u32, address: *const (), kind: Kind) {
    access_as(instructions, address, |_| kind);
}

/// Charges instructions, and then a compare-exchange, for which `fails` says whether the word has
/// another value than it expects. If the machine compares by a linked load
/// ([`Machine::linked`](crate::Machine::linked)), one that fails is a read.
#[inline]
pub fn compare_after(instructions: u32, address: *const (), fails: impl Fn() -> bool) {
    access_as(instructions, address, |machine| {
        if machine.linked && fails() { Kind::Read } else { Kind::Exchange }
    });
}

/// Charges instructions, and then an access of the kind that it has when nothing is earlier. If the
/// machine links, an exchange first loads its line. It loads the line again if that has been
/// written before the conditional store.
#[inline]
fn access_as(mut instructions: u32, address: *const (), kind: impl Fn(&Machine) -> Kind) {
    while !step(instructions, address, &kind) {
        instructions = 0;
    }
}

/// Charges instructions, and then an access, or the load that links it. Returns whether the access
/// was made. `true` outside a run.
#[inline]
fn step(instructions: u32, address: *const (), kind: &impl Fn(&Machine) -> Kind) -> bool {
    let mut left = Time::ZERO;
    let alone = with(|world, id| {
        left = world.kernel.execute(id, instructions);
        let alone = left == Time::ZERO && !world.kernel.must_wait(id);
        alone.then(|| make(&mut world.kernel, id, address, kind))
    });
    let Some(made) = alone else { return true };
    made.unwrap_or_else(|| {
        if left > Time::ZERO {
            world::spend(left, Activity::Useful);
        }
        synchronize();
        if with(|world, id| world.kernel.delay(id)) == Some(true) {
            suspend();
        }
        with(|world, id| make(&mut world.kernel, id, address, kind)).unwrap_or(true)
    })
}

/// Makes an access of `id`, which is the earliest thing to happen, or the load that links it.
/// Returns whether it made the access.
#[inline]
fn make(
    kernel: &mut Kernel,
    id: ThreadId,
    address: *const (),
    kind: &impl Fn(&Machine) -> Kind,
) -> bool {
    let kind = kind(&kernel.machine);
    let links = kind == Kind::Exchange && kernel.machine.linked && !kernel.readable(id, address);
    kernel.access(id, address, if links { Kind::Read } else { kind });
    !links
}

/// Returns whether this machine releases by an exchange, so that a store that releases is one.
/// `false` outside a run.
#[must_use]
pub fn releases_by_exchange() -> bool {
    with(|world, _| world.kernel.machine.release_by_exchange).unwrap_or(false)
}

/// Lets all that is earlier happen first, and waits until the processor's own stores are done. That
/// costs nothing on the machines of the papers: their accesses are in order. Nothing outside a run.
pub fn fence() {
    if is_running() {
        glance();
        with(|world, id| world.kernel.fence(id));
    }
}

/// Returns whether the machine has a [`membarrier`] and the program uses it. `true` outside a run,
/// where it does nothing.
#[must_use]
pub fn has_membarrier() -> bool {
    with(|world, _| world.kernel.barriers.are_used()).unwrap_or(true)
}

/// Returns whether the machine has a [`membarrier`] that the program does not use for a while.
/// `false` outside a run.
#[must_use]
pub fn leaves_membarrier() -> bool {
    with(|world, _| world.kernel.barriers.are_left()).unwrap_or(false)
}

/// Says that the program leaves the machine's [`membarrier`] for a while, or uses it again. Nothing
/// on a machine without, and outside a run.
pub fn leave_membarrier(leaves: bool) {
    with(|world, _| world.kernel.barriers.leave(leaves));
}

/// Puts a barrier into all other running threads of the address space, each of which is interrupted
/// for it: see [`Membarrier`](crate::machine::Membarrier). No more than a [`fence`] on a machine
/// without. Nothing outside a run.
pub fn membarrier() {
    fence();
    if is_running() {
        synchronize();
        with(|world, id| world.kernel.barrier(id));
    }
}

/// A number for the word at `address` that is the same on every run: what a table hashed by address
/// must hash instead.
#[must_use]
pub fn identity(address: *const ()) -> u64 {
    with(|world, _| world.kernel.memory.identities.of(address))
        .unwrap_or_else(|| outside("an address"))
}

/// Names the words in `bytes` bytes from `address` on, for
/// [`Statistics::words`](crate::Statistics::words).
///
/// What has the same name is counted together. Of nested names the one that begins last holds, and
/// the shortest of those; a name stays with its memory, whatever comes to lie there later.
///
/// Takes no time. Nothing outside a run, and in a run that does not count words.
pub fn label(address: *const (), bytes: usize, name: &str) {
    with(|world, _| {
        let Kernel { memory, scheduler, .. } = &mut world.kernel;
        if let Some(words) = &mut scheduler.threads.words {
            words.label(&mut memory.identities, address, bytes, name);
        }
    })
    .unwrap_or_default();
}

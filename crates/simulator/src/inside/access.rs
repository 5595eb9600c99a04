//! Accesses to shared words, and the names of words.

use super::clock::glance;
use super::run::is_running;
use crate::memory::Kind;
use crate::services::Kernel;
use crate::statistics::Activity;
use crate::world::{self, outside, suspend, synchronize, with};
use crate::{Machine, Time};

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

/// Charges instructions, and then an access of the kind that it has when nothing is earlier.
#[inline]
fn access_as(instructions: u32, address: *const (), kind: impl Fn(&Machine) -> Kind) {
    let mut left = Time::ZERO;
    let alone = with(|world, id| {
        left = world.kernel.execute(id, instructions);
        let alone = left == Time::ZERO && !world.kernel.must_wait(id);
        if alone {
            let kind = kind(&world.kernel.machine);
            world.kernel.access(id, address, kind);
        }
        alone
    });
    if alone == Some(false) {
        if left > Time::ZERO {
            world::spend(left, Activity::Useful);
        }
        synchronize();
        if with(|world, id| world.kernel.delay(id)) == Some(true) {
            suspend();
        }
        with(|world, id| {
            let kind = kind(&world.kernel.machine);
            world.kernel.access(id, address, kind);
        });
    }
}

/// Returns whether this machine releases by an exchange, so that a store that releases is one.
/// `false` outside a run.
#[must_use]
pub fn releases_by_exchange() -> bool {
    with(|world, _| world.kernel.machine.release_by_exchange).unwrap_or(false)
}

/// Lets all that is earlier happen first. A fence costs nothing on these machines: their accesses
/// are in order.
pub fn fence() {
    if is_running() {
        glance();
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

//! Models of the reader-writer lock: writers are alone, readers are together, and no wake-up is
//! lost, whichever thread gives up.
//!
//! The gate is a spin lock where that is enough, because the blocking mutex's own steps are
//! modelled elsewhere and multiply the executions.

use std::time::Duration;

use brief::bounded;

use lock_api::{
    RawMutex, RwLockReadGuard, RwLockUpgradableReadGuard as Upgradable, RwLockWriteGuard,
};
use stanchion_competitive_loom::policy::AlwaysBlock;
use stanchion_competitive_loom::{RawPolicyMutex, RawRwLock, ReadRecursive};
use stanchion_machine::Model;
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_models::{beside, brief, explore};
use stanchion_spin::{TestAndSet, Ticket};

/// The data under the lock: read and counted without atomics, under loom's race checker, which also
/// reports a reader beside a writer.
struct Payload(UnsafeCell<u32>);

// SAFETY: it is what a lock is for. The models check that.
unsafe impl Send for Payload {}
// SAFETY: as above.
unsafe impl Sync for Payload {}

impl Payload {
    fn add_one(&self) {
        // SAFETY: the caller writes; if that is not enough, the cell reports it.
        self.0.with_mut(|count| unsafe { *count += 1 });
    }

    fn count(&self) -> u32 {
        // SAFETY: the caller reads.
        self.0.with(|count| unsafe { *count })
    }
}

type Lock<G> = lock_api::RwLock<RawRwLock<G>, Payload>;

fn new<G: RawMutex>() -> Arc<Lock<G>> {
    Arc::new(Lock::new(Payload(UnsafeCell::new(0))))
}

fn write<G: RawMutex>(lock: &Lock<G>) {
    lock.write().add_one();
}

fn read<G: RawMutex>(lock: &Lock<G>) {
    assert!(lock.read().count() <= 2);
}

fn read_and_write<G: RawMutex + 'static>() {
    let lock = new::<G>();
    let other = beside(&lock, |lock| {
        read(lock);
        write(lock);
    });
    write(&lock);
    read(&lock);
    other.join().unwrap();
    assert_eq!(lock.read().count(), 2);
    assert!(lock.try_write().is_some());
}

#[test]
fn rw_lock_two_threads_bounded() {
    explore("rw_lock_two_threads_bounded", Model::new().preemptions(3), || {
        let lock = new::<TestAndSet>();
        let other = beside(&lock, read);
        write(&lock);
        other.join().unwrap();
        assert_eq!(lock.read().count(), 1);
    });
}

#[test]
fn rw_lock_two_writers() {
    explore("rw_lock_two_writers", Model::new(), || {
        let lock = new::<TestAndSet>();
        let other = beside(&lock, write);
        write(&lock);
        other.join().unwrap();
        assert_eq!(lock.read().count(), 2);
    });
}

#[test]
fn rw_lock_two_threads_twice_bounded() {
    let model = bounded(Model::new(), 2, 3);
    explore("rw_lock_two_threads_twice_bounded", model, read_and_write::<TestAndSet>);
}

#[test]
fn rw_lock_behind_a_blocking_mutex_bounded() {
    let model = Model::new().preemptions(2).choices(1).objects(24);
    let name = "rw_lock_behind_a_blocking_mutex_bounded";
    explore(name, model, read_and_write::<RawPolicyMutex<AlwaysBlock>>);
}

#[test]
fn rw_lock_two_readers_and_a_writer_bounded() {
    let model = bounded(Model::new().choices(1), 1, 2);
    explore("rw_lock_two_readers_and_a_writer_bounded", model, || {
        let lock = new::<TestAndSet>();
        let readers = [beside(&lock, read), beside(&lock, read)];
        write(&lock);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!(lock.read().count(), 1);
    });
}

#[test]
fn rw_lock_two_writers_and_a_reader_bounded() {
    let model = Model::new().preemptions(2).choices(1);
    explore("rw_lock_two_writers_and_a_reader_bounded", model, || {
        let lock = new::<TestAndSet>();
        let others = [beside(&lock, write), beside(&lock, read)];
        write(&lock);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(lock.read().count(), 2);
    });
}

/// Waits to write, and gives up by choice.
fn try_to_write<G>(lock: &Lock<G>) -> bool
where
    G: lock_api::RawMutexTimed<Duration = Duration, Instant = stanchion_machine::clock::Instant>,
{
    let got = lock.try_write_for(Duration::from_secs(1));
    got.map(|payload| payload.add_one()).is_some()
}

/// Two writers wait for a reader, without the gate. One gives up, and the other gets the lock.
#[test]
fn rw_lock_one_of_two_writers_gives_up_bounded() {
    let model = bounded(Model::new(), 2, 3);
    explore("rw_lock_one_of_two_writers_gives_up_bounded", model, || {
        let lock = new::<TestAndSet>();
        let payload = lock.read();
        let hasty = beside(&lock, try_to_write);
        let patient = beside(&lock, write);
        drop(payload);
        patient.join().unwrap();
        let written = 1 + u32::from(hasty.join().unwrap());
        assert_eq!(lock.read().count(), written);
    });
}

/// An upgradable reader takes the gate while a reader sleeps that a writer without the gate has
/// kept out. That reader gets in. With `again` another read has cleared the mark of the writer.
fn an_upgradable_reader_meets_a_sleeper(again: bool) {
    let lock = new::<TestAndSet>();
    let payload = lock.read();
    let writer = beside(&lock, write);
    let reader = beside(&lock, read);
    drop(payload);
    if again {
        read(&lock);
    }
    let upgradable = lock.upgradable_read();
    reader.join().unwrap();
    drop(upgradable);
    writer.join().unwrap();
    assert_eq!(lock.read().count(), 1);
}

#[test]
fn rw_lock_an_upgradable_reader_meets_a_sleeper_bounded() {
    let model = Model::new().preemptions(2).choices(1);
    explore("rw_lock_an_upgradable_reader_meets_a_sleeper_bounded", model, || {
        an_upgradable_reader_meets_a_sleeper(false);
    });
}

#[test]
fn rw_lock_an_upgradable_reader_meets_a_sleeper_again_bounded() {
    let model = Model::new().preemptions(2).choices(1);
    explore("rw_lock_an_upgradable_reader_meets_a_sleeper_again_bounded", model, || {
        an_upgradable_reader_meets_a_sleeper(true);
    });
}

/// A writer that gives up lets readers in again, and no thread sleeps for ever.
#[test]
fn rw_lock_a_writer_gives_up_bounded() {
    let model = bounded(Model::new(), 1, 2);
    explore("rw_lock_a_writer_gives_up_bounded", model, || {
        let lock = new::<TestAndSet>();
        let writer = beside(&lock, try_to_write);
        let reader = beside(&lock, read);
        read(&lock);
        reader.join().unwrap();
        let got = writer.join().unwrap();
        assert_eq!(lock.read().count(), u32::from(got));
        assert!(lock.try_write().is_some());
    });
}

#[test]
fn rw_lock_a_reader_gives_up_bounded() {
    explore("rw_lock_a_reader_gives_up_bounded", Model::new().preemptions(3), || {
        let lock = new::<TestAndSet>();
        let writer = beside(&lock, write);
        let seen = lock.try_read_for(Duration::from_secs(1)).map(|payload| payload.count());
        assert!(seen.is_none_or(|count| count <= 1));
        writer.join().unwrap();
        assert_eq!(lock.try_write().expect("all threads have unlocked").count(), 1);
    });
}

#[test]
fn rw_lock_tries() {
    explore("rw_lock_tries", Model::new().weak_failures(1), || {
        let lock = new::<TestAndSet>();
        let writer =
            beside(&lock, |lock| lock.try_write().map(|payload| payload.add_one()).is_some());
        let seen = lock.try_read().map(|payload| payload.count());
        let wrote = writer.join().unwrap();
        // Either may have kept the other out, but not each the other.
        assert!(wrote || seen.is_some());
        assert_eq!(lock.try_write().expect("all threads have unlocked").count(), u32::from(wrote));
    });
}

/// An upgradable reader beside a reader; then it writes, without letting another writer in between.
#[test]
fn rw_lock_upgrades_bounded() {
    let model = Model::new().preemptions(2).choices(1);
    explore("rw_lock_upgrades_bounded", model, || {
        let lock = new::<TestAndSet>();
        let other = beside(&lock, |lock| {
            read(lock);
            write(lock);
        });
        let upgradable = lock.upgradable_read();
        let before = upgradable.count();
        let writing = Upgradable::upgrade(upgradable);
        assert_eq!(writing.count(), before);
        writing.add_one();
        let reading = RwLockWriteGuard::downgrade(writing);
        assert_eq!(reading.count(), before + 1);
        drop(reading);
        other.join().unwrap();
        assert_eq!(lock.read().count(), 2);
    });
}

/// A reader keeps an upgrade with a deadline waiting. An upgrade that gives up still reads, and can
/// hand on its upgradable lock.
#[test]
fn rw_lock_an_upgrade_gives_up_bounded() {
    let model = Model::new().preemptions(3);
    explore("rw_lock_an_upgrade_gives_up_bounded", model, || {
        let lock = new::<TestAndSet>();
        let reader = beside(&lock, read);
        let upgradable = lock.upgradable_read();
        let wrote = match Upgradable::try_upgrade_for(upgradable, Duration::from_secs(1)) {
            Ok(writing) => {
                writing.add_one();
                assert_eq!(RwLockWriteGuard::downgrade_to_upgradable(writing).count(), 1);
                true
            }
            Err(reading) => {
                assert_eq!(Upgradable::downgrade(reading).count(), 0);
                false
            }
        };
        reader.join().unwrap();
        assert_eq!(lock.try_write().expect("all threads have unlocked").count(), u32::from(wrote));
    });
}

/// A reader that sleeps because of a writer gets in when the writer becomes an upgradable reader,
/// which ends only after the reader.
#[test]
fn rw_lock_a_writer_becomes_upgradable_bounded() {
    let model = Model::new().preemptions(3);
    explore("rw_lock_a_writer_becomes_upgradable_bounded", model, || {
        let lock = new::<TestAndSet>();
        let writing = lock.write();
        let reader = beside(&lock, |lock| lock.read().count());
        writing.add_one();
        let upgradable = RwLockWriteGuard::downgrade_to_upgradable(writing);
        assert_eq!(reader.join().unwrap(), 1);
        drop(upgradable);
        assert!(lock.try_write().is_some());
    });
}

/// Two readers beside an upgrade, which may give up. The guard that is left ends only after both.
#[test]
fn rw_lock_readers_meet_an_upgrade_bounded() {
    let model = bounded(Model::new().choices(1), 1, 2);
    explore("rw_lock_readers_meet_an_upgrade_bounded", model, || {
        let lock = new::<TestAndSet>();
        let upgradable = lock.upgradable_read();
        let readers = [beside(&lock, read), beside(&lock, read)];
        let soon = Duration::from_secs(1);
        let left = match Upgradable::try_upgrade_for(upgradable, soon) {
            Ok(writing) => RwLockWriteGuard::downgrade_to_upgradable(writing),
            Err(upgradable) => upgradable,
        };
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        drop(left);
        assert!(lock.try_write().is_some());
    });
}

/// A thread that reads reads again, whatever the writer beside it does.
#[test]
fn rw_lock_read_recursively_bounded() {
    explore("rw_lock_read_recursively_bounded", Model::new().preemptions(3), || {
        let lock = new::<TestAndSet>();
        let writer = beside(&lock, write);
        let outer = lock.read();
        let inner = lock.read_recursive();
        assert_eq!(outer.count(), inner.count());
        drop((outer, inner));
        writer.join().unwrap();
        assert_eq!(lock.try_write().expect("both are done").count(), 1);
    });
}

/// A gate that serves in order releases the lock to any waiter.
#[test]
fn rw_lock_released_fairly_bounded() {
    explore("rw_lock_released_fairly_bounded", Model::new().preemptions(3), || {
        let lock = new::<Ticket>();
        let reader = beside(&lock, |lock| {
            let reading = lock.read();
            assert!(reading.count() <= 1);
            RwLockReadGuard::unlock_fair(reading);
        });
        let writing = lock.write();
        writing.add_one();
        RwLockWriteGuard::unlock_fair(writing);
        let seen = lock.try_read().map(|payload| payload.count());
        assert_eq!(seen, Some(1));
        reader.join().unwrap();
    });
}

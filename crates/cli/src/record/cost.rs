//! C before anything is known of the program: how long a woken thread takes to run.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use stanchion_machine::atomic::AtomicU32 as Word;
use stanchion_machine::clock::{self, Deadline, Ticks};
use stanchion_machine::park;

const ROUNDS: usize = 100;
/// Until the other has surely gone to sleep.
const ASLEEP: Duration = Duration::from_micros(60);

/// The tenth hundredth of some wake-ups, in nanoseconds. Takes some 20 ms.
pub(super) fn measured() -> u64 {
    let word = Word::new(0);
    let seen = AtomicU32::new(0);
    let woken_at = AtomicU64::new(0);
    let mut gaps = Vec::with_capacity(ROUNDS);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS as u32 {
                while word.load(stanchion_machine::atomic::Ordering::Acquire) == round {
                    park::wait(&word, round, Deadline::NEVER);
                }
                let gap =
                    clock::now().nanos_since(Ticks::from_bits(woken_at.load(Ordering::Relaxed)));
                gaps.push(gap);
                // Release: pairs with the Acquire below.
                seen.store(round + 1, Ordering::Release);
            }
        });
        for round in 1..=ROUNDS as u32 {
            std::thread::sleep(ASLEEP);
            woken_at.store(clock::now().to_bits(), Ordering::Relaxed);
            // Release: shows the time to the thread that wakes.
            word.store(round, stanchion_machine::atomic::Ordering::Release);
            park::wake_one(&word);
            // Acquire: pairs with the Release above.
            while seen.load(Ordering::Acquire) < round {
                std::thread::yield_now();
            }
        }
    });
    gaps.sort_unstable();
    gaps[ROUNDS / 10]
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_wake_up_takes_time() {
        let cost = super::measured();
        assert!((100..1_000_000_000).contains(&cost), "{cost}");
    }
}

//! Phase numbers that wrap around, for the tests of several barriers. A barrier that begins just
//! before that can only be made in its own file.

use super::interface::{Barrier, Broken};
use super::waiter::Waiter;

/// Lets the members of `barrier` cross some phases. Then one leaves, which the others must learn.
pub(super) fn crosses<B: Barrier>(barrier: &B) {
    const PHASES: usize = 4;
    let leaders: usize = std::thread::scope(|scope| {
        let members: Vec<_> = Waiter::all(barrier)
            .into_iter()
            .map(|mut waiter| {
                scope.spawn(move || {
                    let led = (0..PHASES).filter(|_| waiter.wait().unwrap().is_leader()).count();
                    if waiter.index() > 0 {
                        assert_eq!(waiter.wait(), Err(Broken::Left));
                        assert_eq!(waiter.wait(), Err(Broken::Left));
                    }
                    led
                })
            })
            .collect();
        members.into_iter().map(|member| member.join().unwrap()).sum()
    });
    assert_eq!(leaders, PHASES);
    assert_eq!(barrier.broken(), Some(Broken::Left));
}

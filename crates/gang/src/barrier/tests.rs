//! What the tests of several barriers share: phases whose numbers wrap around. Barriers that begin
//! just before that can only be made in their own files.

use super::interface::{Barrier, Broken};
use super::waiter::Waiter;

/// Members of `barrier` cross some phases, then one leaves, which the others must be told.
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

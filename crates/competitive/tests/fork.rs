//! Children of a fork that use what threads of their parent were waiting for.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use stanchion_competitive::Semaphore;

/// Runs `body` in a child and returns whether it ended well.
#[must_use]
fn in_child(body: impl FnOnce()) -> bool {
    /// Ends the child even if `body` panics: what it would unwind to belongs to the parent.
    struct Exit(i32);

    impl Drop for Exit {
        fn drop(&mut self) {
            // SAFETY: ends the process.
            unsafe { libc::_exit(self.0) }
        }
    }

    // SAFETY: the child has one thread, which does what the tests need: the C library makes its
    // allocator usable there.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut exit = Exit(1);
        body();
        exit.0 = 0;
        drop(exit);
    }
    let began = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: writes to `status`.
        let ended = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
        if ended == child {
            return status == 0;
        }
        if began.elapsed() > Duration::from_secs(40) {
            // SAFETY: a child that has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_child_stands_in_line_for_permits_without_its_parents_threads() {
    const SOON: Duration = Duration::from_millis(1);
    let semaphore = Semaphore::new(2);
    let held = semaphore.acquire();
    std::thread::scope(|scope| {
        // One is the first in line. Another may have come behind it.
        let first = scope.spawn(|| drop(semaphore.acquire_many(3)));
        let second = scope.spawn(|| drop(semaphore.acquire()));
        while semaphore.try_acquire().is_some() {
            std::thread::yield_now();
        }
        let all_end = (0..20).all(|_| {
            in_child(|| {
                assert!(semaphore.try_acquire_many_for(2, SOON).is_none(), "one is held");
                let one = semaphore.try_acquire().expect("no thread of the child claims it");
                assert!(semaphore.try_acquire_for(SOON).is_none());
                drop(one);
                semaphore.add_permits(2);
                let three = semaphore.acquire_many(3);
                std::thread::scope(|scope| {
                    for _ in 0..3 {
                        scope.spawn(|| drop(semaphore.acquire_many(2)));
                    }
                    drop(three);
                });
                assert_eq!(semaphore.available_permits(), 3);
                assert!(in_child(|| drop(semaphore.acquire_many(3))));
            })
        });
        semaphore.add_permits(1);
        drop(held);
        first.join().expect("it gets its permits");
        second.join().expect("it gets its permit");
        assert!(all_end);
    });
    assert_eq!(semaphore.available_permits(), 3);
}

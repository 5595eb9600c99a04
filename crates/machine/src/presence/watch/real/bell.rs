//! The epoll in which the sleeper sleeps: of rings, and of a bell that is rung for it.

use crate::clock::Deadline;
use crate::presence::Refused;
use crate::presence::switches::real::last_error;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The name of the bell among the events; no thread has that index.
const RUNG: u64 = u64::MAX;

/// The number of events that are fetched at once; the others come with the next wait.
const BATCH: usize = 16;

#[derive(Debug)]
pub(super) struct Bell {
    /// The epoll of all rings and of `rung`.
    epoll: OwnedFd,
    /// The eventfd by which the sleeper is woken.
    rung: OwnedFd,
}

/// An event of the sleep.
#[derive(Clone, Copy, Debug)]
pub(super) enum Happened {
    Rung,
    /// The thread of this index was switched; or, if so said, will never be again.
    Switched {
        index: usize,
        ended: bool,
    },
}

impl Bell {
    pub(super) fn new() -> Result<Self, Refused> {
        // SAFETY: no pointers.
        let epoll = owned("epoll_create1", unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: no pointers.
        let rung = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        let bell = Self { epoll, rung: owned("eventfd", rung)? };
        bell.add(&bell.rung, RUNG, libc::EPOLLIN as u32)?;
        Ok(bell)
    }

    /// Has the sleeper woken at each record of `ring` from now on. Closing `ring` ends it.
    pub(super) fn listen(&self, ring: &OwnedFd, index: usize) -> Result<(), Refused> {
        // By edges: each record rings once, be it read or not.
        self.add(ring, index as u64, (libc::EPOLLIN | libc::EPOLLET) as u32)
    }

    fn add(&self, what: &OwnedFd, name: u64, events: u32) -> Result<(), Refused> {
        let mut event = libc::epoll_event { events, u64: name };
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: `event` is whole, and both descriptors are open.
        let result = unsafe {
            libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, what.as_raw_fd(), &raw mut event)
        };
        if result == 0 { Ok(()) } else { Err(failed("epoll_ctl")) }
    }

    /// Ends the sleep that goes on, or the next.
    pub(super) fn ring(&self) {
        let one = 1_u64;
        // SAFETY: reads the eight bytes of `one`. It cannot fail: the bell is never rung 2^64
        // times.
        unsafe { libc::write(self.rung.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// Sleeps until something happens, a signal comes, or the deadline has passed; tells what has
    /// happened.
    pub(super) fn sleep(&self, deadline: Deadline, mut tell: impl FnMut(Happened)) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        let count = self.fetch(&mut events, deadline);
        for event in &events[..count] {
            let (name, what) = (event.u64, event.events);
            if name == RUNG {
                self.rest();
                tell(Happened::Rung);
            } else {
                let ended = what & (libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0;
                tell(Happened::Switched { index: name as usize, ended });
            }
        }
    }

    /// It has been heard.
    fn rest(&self) {
        let mut rung = 0_u64;
        // SAFETY: writes at most the eight bytes of `rung`. It fails if it has been heard already,
        // which is as well.
        unsafe { libc::read(self.rung.as_raw_fd(), (&raw mut rung).cast(), size_of::<u64>()) };
    }

    /// Returns the number of events: none if the deadline passed or a signal came first.
    fn fetch(&self, events: &mut [libc::epoll_event; BATCH], deadline: Deadline) -> usize {
        /// True while the kernel seems to have the call that takes nanoseconds (Linux 5.11), and
        /// nothing forbids it.
        static FINE: AtomicBool = AtomicBool::new(true);

        let left = deadline.remaining();
        // Relaxed: at worst the kernel is asked once more.
        if FINE.load(Ordering::Relaxed) {
            let timeout = left.map(|left| libc::timespec {
                tv_sec: left.as_secs().try_into().unwrap_or(libc::time_t::MAX),
                tv_nsec: left.subsec_nanos().into(),
            });
            // SAFETY: the kernel writes at most `BATCH` events, and `timeout` is null or outlives
            // the call.
            let count = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    self.epoll.as_raw_fd(),
                    events.as_mut_ptr(),
                    BATCH as libc::c_int,
                    timeout.as_ref().map_or(ptr::null(), ptr::from_ref),
                    ptr::null::<libc::sigset_t>(),
                    size_of::<u64>(),
                )
            };
            if count >= 0 {
                return count as usize;
            }
            if last_error() == libc::EINTR {
                return 0;
            }
            FINE.store(false, Ordering::Relaxed);
        }
        // Rounded up: a deadline never passes early.
        let millis = left.map_or(-1, |left| {
            left.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(libc::c_int::MAX)
        });
        // SAFETY: the kernel writes at most `BATCH` events.
        let count = unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                events.as_mut_ptr(),
                BATCH as libc::c_int,
                millis,
            )
        };
        usize::try_from(count).unwrap_or(0)
    }
}

fn owned(call: &'static str, descriptor: i32) -> Result<OwnedFd, Refused> {
    if descriptor < 0 {
        return Err(failed(call));
    }
    // SAFETY: the call has just made it, and no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn failed(call: &'static str) -> Refused {
    match last_error() {
        errno @ (libc::EMFILE | libc::ENFILE) => Refused::Descriptors { errno },
        errno => Refused::Other { call, errno },
    }
}

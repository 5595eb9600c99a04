//! The shim, for the GNU C library on 64-bit Linux. Elsewhere the library is empty, and `stanchion record` says so.
//!
//! # What it may not do
//!
//! It runs inside any call of `pthread_mutex_lock` of any program: in a signal handler's interrupted code, in the allocator, in a constructor before
//! `main`, in the child of a fork, with any locks held. So, in everything that a lock or unlock reaches:
//!
//! 1. It calls nothing of the program's: no `malloc` (see [`allocator`]), no function that can be
//!    interposed but those that only enter the kernel. Of these it calls none in which a thread can
//!    be cancelled, such as `open`: a lock is no place for that.
//! 2. It takes no lock of the C library's: `dladdr`, `dlsym` and `dl_iterate_phdr` wait for the loader, which may wait for a constructor, which may
//!    wait for the lock that this thread holds. Names are found in `/proc/self/maps` instead ([`place`]), functions before the program starts
//!    ([`real`]).
//! 3. It leaves `errno` as it was ([`errno`]).
//! 4. It writes to no file but the shared table, and says nothing once the program runs.
//! 5. It needs nothing in the child of a fork that another thread of the parent may have held. What
//!    lists threads is stamped with the process's number ([`machine::fork`]), and what a parent's
//!    threads left there is forgotten at the next use.
//!
//! One exception: where locks are replaced, the first lock of each thread gives the thread its number
//! ([`machine::thread::index`]), which the C library is asked to note (`pthread_setspecific`). If the
//! program's libraries make 32 such notes before the shim starts, that calls `calloc`. An allocator
//! that locks one of ours meanwhile finds a thread without a number, which is served all the same.

mod allocator;
mod errno;
mod interpose;
mod locks;
mod maps;
mod place;
mod real;
mod replace;
mod session;
mod waits;

/// A mutex of the program's.
type Mutex = *mut libc::pthread_mutex_t;
/// A condition variable of the program's.
type Cond = *mut libc::pthread_cond_t;
/// Where the program called from; 0 if that is not known.
type Site = usize;

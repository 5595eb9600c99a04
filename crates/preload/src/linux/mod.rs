//! The shim, for the GNU C library on 64-bit Linux. Elsewhere the library is empty, and
//! `stanchion record` says so.
//!
//! # Layers
//!
//! A module imports only modules of the lines below its own.
//!
//! ```text
//! interpose                    the functions that stand before the C library's
//! calls                        waits in other functions of the C library
//! futex                        waits by the system call; the function `syscall`
//! cond                         a wait releases and locks its mutex as the mode says
//! dispatch                     what a lock, an unlock and a filter do in each mode
//! sampling                     names of waits by paths of calls
//! session   waits              the mode of the process; measured waits
//! orders                       the order in which threads take locks
//! policies                     the replaced mutexes, by the name of their policy
//! mutex                        the replaced mutex
//! current                      where threads wait now; waits that have ended
//! rings                        switch records of threads
//! marks                        numbers of locks
//! layout    until    locks     the C library's structures; limits of waits; mutexes waited for
//! unwind    place              paths of calls; names of locks
//! frames                       the unwind tables of a module
//! module                       modules, as the loader knows them
//! real      maps               the C library's functions; what the kernel maps
//! filter                       filters of system calls
//! table     message   permits  the shared table; messages; permits against filters
//! seat                         a seat for what others read, such as a ring
//! log                          the log of single waits
//! errno     deadline allocator
//! ```
//!
//! # What the shim must not do
//!
//! The shim runs inside any call of `pthread_mutex_lock` or `syscall` of any program: in code that
//! a signal handler interrupted, in the allocator, in a constructor before `main`, or in the child
//! of a fork, with any locks held. So these rules hold for all code that a lock or unlock reaches:
//!
//! 1. It calls no code of the program: no `malloc` (see [`allocator`]). Of the functions that can
//!    be interposed it calls only those that do nothing but enter the kernel. Of these it calls
//!    none in which a thread can be cancelled, such as `open`: a lock must not be a cancellation
//!    point.
//! 2. It takes no lock of the C library. `dladdr`, `dlsym` and `dl_iterate_phdr` wait for the
//!    loader. The loader may wait for a constructor, which may wait for the lock that this thread
//!    holds. So names are found in `/proc/self/maps` ([`place`]), and functions are looked up
//!    before the program starts ([`real`]).
//! 3. It leaves `errno` as it was ([`errno`]).
//! 4. It writes to no file but the shared table and the log, and prints nothing once the program
//!    runs.
//! 5. Each system call that the program may not need itself is made with a permit ([`filter`]).
//! 6. In the child of a fork it needs nothing that another thread of the parent may have held.
//!    Lists of threads are stamped with the process's number ([`stanchion_machine::fork`]). Entries
//!    of a parent's threads are forgotten at the next use.
//!
//! There are two exceptions. The memory that the shim has for each thread is thread-local. After
//! the program has loaded a library, the C library may allocate at a thread's next access, up to
//! version 2.38. And if locks are replaced, the first lock of each thread gives the thread its
//! number ([`stanchion_machine::thread::index`]), and the C library stores a note of it
//! (`pthread_setspecific`). If the program's libraries make 32 POSIX keys before the shim starts,
//! that calls `calloc`. An allocator that locks a replaced mutex meanwhile finds a thread without a
//! number. Such a thread is served too.

mod allocator;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod calls;
mod cond;
mod current;
mod deadline;
mod dispatch;
mod errno;
mod filter;
mod frames;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod futex;
mod interpose;
mod layout;
mod locks;
mod log;
mod maps;
mod marks;
mod message;
mod module;
mod mutex;
mod orders;
mod permits;
mod place;
mod policies;
mod real;
mod rings;
mod sampling;
mod seat;
mod session;
mod table;
mod until;
mod unwind;
mod waits;

/// A mutex of the program.
type Mutex = *mut libc::pthread_mutex_t;
/// A condition variable of the program.
type Cond = *mut libc::pthread_cond_t;
/// The address from which the program called, or 0 if it is not known.
type Site = usize;

//! The tests, each by its name.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::thread;

use libc::pthread_mutex_t;

use super::asleep;
use super::filter::{self, Way};
use super::others::until_others_sleep;

/// A mutex of the C library in memory of any kind.
#[derive(Clone, Copy)]
struct Mutex(*mut pthread_mutex_t);

// SAFETY: a mutex may be used by several threads.
unsafe impl Send for Mutex {}
// SAFETY: as above.
unsafe impl Sync for Mutex {}

impl Mutex {
    /// Returns the mutex at the beginning of new memory.
    fn mapped() -> Self {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, anywhere. Zeros are a mutex.
        let memory = unsafe { libc::mmap(ptr::null_mut(), 4096, access, kind, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        Self(memory.cast())
    }

    #[inline(never)]
    fn lock(self) {
        // SAFETY: a mutex.
        assert_eq!(unsafe { libc::pthread_mutex_lock(self.0) }, 0);
    }

    fn unlock(self) {
        // SAFETY: a mutex that this thread holds.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(self.0) }, 0);
    }

    /// Gives the memory back.
    fn unmap(self) {
        // SAFETY: mapped by `mapped`, and used by no thread any more.
        assert_eq!(unsafe { libc::munmap(self.0.cast(), 4096) }, 0);
    }
}

#[unsafe(no_mangle)]
/// A mutex that is recorded under its name.
static mut HELD_OFTEN: pthread_mutex_t = libc::PTHREAD_MUTEX_INITIALIZER;

/// Returns the static mutex.
fn held_often() -> Mutex {
    Mutex(&raw mut HELD_OFTEN)
}

/// Waits for a word by `syscall`, as the locks of Rust do, until it is another than `value`.
#[inline(never)]
fn wait_for_word(word: &AtomicU32, value: u32) {
    while word.load(Ordering::Acquire) == value {
        let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word is there.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, value, 0_usize) };
    }
}

/// Wakes all that wait for a word.
fn wake(word: *mut u32) {
    let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel looks at the address only.
    unsafe { libc::syscall(libc::SYS_futex, word, wake, i32::MAX) };
}

/// Sleeps without `std`, which may make other calls.
fn rest(millis: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: millis * 1_000_000 };
    // SAFETY: a time.
    unsafe { libc::nanosleep(&time, ptr::null_mut()) };
}

/// The calls that the threads of `filtered` need.
const NEEDED: [libc::c_long; 18] = [
    libc::SYS_futex,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_write,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_madvise,
    libc::SYS_clone3,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
];

/// Installs a filter that kills at any call that the program does not need. Then threads wait: one
/// that was there before, and a new one.
fn filtered(way: Way) {
    static GO: AtomicU32 = AtomicU32::new(0);
    static WAITS: AtomicU32 = AtomicU32::new(0);
    extern "C" fn waiter(_: *mut c_void) -> *mut c_void {
        wait_for_word(&GO, 0);
        for _ in 0..20 {
            WAITS.fetch_add(1, Ordering::SeqCst);
            held_often().lock();
            rest(1);
            held_often().unlock();
        }
        ptr::null_mut()
    }
    let start = || {
        let mut thread = 0;
        // SAFETY: the function needs nothing.
        let made =
            unsafe { libc::pthread_create(&mut thread, ptr::null(), waiter, ptr::null_mut()) };
        assert_eq!(made, 0);
        thread
    };
    let first = start();
    rest(20);
    // `prctl` filters this thread and those that it makes. The first one goes on unfiltered.
    filter::install(&mut filter::allowing_only(&NEEDED), way).unwrap();
    let second = start();
    rest(5);
    GO.store(1, Ordering::Release);
    wake(GO.as_ptr());
    for _ in 0..20 {
        held_often().lock();
        rest(1);
        held_often().unlock();
    }
    for thread in [first, second] {
        // SAFETY: made above.
        assert_eq!(unsafe { libc::pthread_join(thread, ptr::null_mut()) }, 0);
    }
    assert_eq!(WAITS.load(Ordering::SeqCst), 40);
}

/// Makes threads wait for the static mutex, and for a word. Each of them waits for both.
fn wait_often() {
    const THREADS: u32 = 3;
    let (word, arrived) = (AtomicU32::new(0), AtomicU32::new(0));
    // Waits until so many threads have arrived, and then until they sleep.
    let until_asleep = |threads| {
        while arrived.load(Ordering::SeqCst) < threads {
            rest(1);
        }
        until_others_sleep("");
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                arrived.fetch_add(1, Ordering::SeqCst);
                wait_for_word(&word, 0);
                arrived.fetch_add(1, Ordering::SeqCst);
                for _ in 0..10 {
                    held_often().lock();
                    rest(1);
                    held_often().unlock();
                }
            });
        }
        until_asleep(THREADS);
        held_often().lock();
        word.store(1, Ordering::Release);
        wake(word.as_ptr());
        until_asleep(2 * THREADS);
        held_often().unlock();
    });
}

/// Closes all descriptors, also those that others may have opened, and waits. No descriptor may be
/// open afterwards.
fn closes_all() {
    for _ in 0..2 {
        for descriptor in 0..1024 {
            // SAFETY: nothing here uses a descriptor.
            unsafe { libc::close(descriptor) };
        }
        wait_often();
    }
    for descriptor in 0..1024 {
        // SAFETY: asks for a flag.
        assert_eq!(unsafe { libc::fcntl(descriptor, libc::F_GETFD) }, -1);
    }
}

/// Waits in threads that were made by `clone`, and share the memory that each thread of the C
/// library has for itself.
fn raw_threads() {
    const THREADS: usize = 4;
    static WORD: AtomicU32 = AtomicU32::new(0);
    static ENDED: AtomicU32 = AtomicU32::new(0);
    extern "C" fn body(_: *mut c_void) -> i32 {
        for turn in 0..50 {
            wait_for_word(&WORD, turn);
        }
        ENDED.fetch_add(1, Ordering::SeqCst);
        0
    }
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM;
    let threads = [(); THREADS].map(|()| {
        let stack = vec![0_u128; 8192].leak();
        let top = stack.as_mut_ptr_range().end.cast();
        // SAFETY: the function needs nothing, and the stack is its own.
        let thread = unsafe { libc::clone(body, top, flags, ptr::null_mut()) };
        assert!(thread > 0);
        thread
    });
    for turn in 0..50 {
        // A thread that was woken does not sleep before it waits for the next value.
        until_others_sleep("");
        WORD.store(turn + 1, Ordering::Release);
        wake(WORD.as_ptr());
    }
    // Until they have left their stacks.
    while threads.iter().any(|&thread| asleep::look(thread).is_some()) {
        rest(1);
    }
    assert_eq!(ENDED.load(Ordering::SeqCst), THREADS as u32);
}

/// Lets many threads wait for a lock and for a word at the same time. Prints their number.
fn many_threads(wanted: usize) {
    static WAITING: AtomicU32 = AtomicU32::new(0);
    static WORD: AtomicU32 = AtomicU32::new(0);
    extern "C" fn body(odd: *mut c_void) -> *mut c_void {
        WAITING.fetch_add(1, Ordering::SeqCst);
        if odd.is_null() {
            wait_for_word(&WORD, 0);
        } else {
            held_often().lock();
            held_often().unlock();
        }
        ptr::null_mut()
    }
    // SAFETY: plain numbers, which the next call replaces.
    let mut attributes = unsafe { std::mem::zeroed() };
    // SAFETY: initializes them.
    assert_eq!(unsafe { libc::pthread_attr_init(&mut attributes) }, 0);
    // SAFETY: initialized.
    assert_eq!(unsafe { libc::pthread_attr_setstacksize(&mut attributes, 32 << 10) }, 0);
    held_often().lock();
    let mut threads = Vec::with_capacity(wanted);
    for number in 0..wanted {
        let (mut thread, odd) = (0, ptr::without_provenance_mut(number % 2));
        // SAFETY: the function needs nothing.
        if unsafe { libc::pthread_create(&mut thread, &attributes, body, odd) } != 0 {
            break;
        }
        threads.push(thread);
    }
    while (WAITING.load(Ordering::SeqCst) as usize) < threads.len() {
        rest(1);
    }
    until_others_sleep("");
    held_often().unlock();
    WORD.store(1, Ordering::Release);
    wake(WORD.as_ptr());
    for thread in &threads {
        // SAFETY: made above.
        assert_eq!(unsafe { libc::pthread_join(*thread, ptr::null_mut()) }, 0);
    }
    println!("{}", threads.len());
}

/// Frees mutexes and words as soon as they are not needed any more, while other threads are still
/// on the way out of their waits.
fn unmapped() {
    for _ in 0..300 {
        let mutex = Mutex::mapped();
        let left = AtomicI32::new(2);
        let both = std::sync::Barrier::new(2);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    both.wait();
                    mutex.lock();
                    let is_last = left.fetch_sub(1, Ordering::Relaxed) == 1;
                    if !is_last {
                        rest(1);
                    }
                    mutex.unlock();
                    if is_last {
                        mutex.unmap();
                    }
                });
            }
        });
    }
    // A word that is gone when its waiter is woken.
    for _ in 0..20 {
        let memory = Mutex::mapped();
        let word = memory.0.cast::<u32>().addr();
        let began = AtomicI32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                began.store(1, Ordering::SeqCst);
                let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
                // SAFETY: the kernel looks at the address only.
                unsafe { libc::syscall(libc::SYS_futex, word, wait, 0, 0_usize) };
                began.store(2, Ordering::SeqCst);
            });
            while began.load(Ordering::SeqCst) == 0 {
                rest(1);
            }
            rest(5);
            memory.unmap();
            while began.load(Ordering::SeqCst) != 2 {
                wake(ptr::with_exposed_provenance_mut(word));
                rest(1);
            }
        });
    }
}

/// Waits on a stack of one page, with nothing readable above it, in a function without unwind
/// tables and with a frame pointer to nowhere.
#[cfg(target_arch = "x86_64")]
fn without_a_way_back() {
    /// Waits for `word` on the stack that ends at `top`.
    #[unsafe(naked)]
    extern "C" fn wait_there(word: *mut u32, top: *mut c_void) -> libc::c_long {
        core::arch::naked_asm!(
            "push rbp",
            "push rbx",
            "mov rbx, rsp",
            // `syscall` reads a seventh argument from the stack.
            "lea rsp, [rsi - 16]",
            "mov rbp, 4096",
            "mov rsi, rdi",
            "mov rdi, {futex}",
            "mov rdx, {wait}",
            "xor ecx, ecx",
            "xor r8d, r8d",
            "xor r9d, r9d",
            "call {syscall}",
            "mov rsp, rbx",
            "pop rbx",
            "pop rbp",
            "ret",
            futex = const libc::SYS_futex,
            wait = const libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            syscall = sym libc::syscall,
        )
    }
    let word = AtomicU32::new(0);
    // SAFETY: new memory, anywhere: 64 KiB for a stack between pages that cannot be read.
    let memory = unsafe {
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(ptr::null_mut(), 18 * 4096, libc::PROT_NONE, kind, -1, 0)
    };
    assert_ne!(memory, libc::MAP_FAILED);
    let bottom = memory.wrapping_byte_add(4096);
    // SAFETY: inside of the memory.
    let made = unsafe { libc::mprotect(bottom, 16 * 4096, libc::PROT_READ | libc::PROT_WRITE) };
    assert_eq!(made, 0);
    let top = bottom.wrapping_byte_add(16 * 4096).addr();
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20 {
                let stack = ptr::with_exposed_provenance_mut(top);
                assert_eq!(wait_there(word.as_ptr(), stack), 0);
                word.store(0, Ordering::SeqCst);
            }
            word.store(2, Ordering::SeqCst);
        });
        while word.load(Ordering::SeqCst) != 2 {
            rest(3);
            wake(word.as_ptr());
        }
    });
}

#[cfg(not(target_arch = "x86_64"))]
fn without_a_way_back() {
    wait_often();
}

pub(crate) fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    match what.as_str() {
        "filter-prctl" => filtered(Way::Prctl),
        "filter-prctl-call" => filtered(Way::PrctlCall),
        "filter-seccomp" => filtered(Way::Seccomp),
        "filter-inlined" => filtered(Way::Inlined),
        "refused-filter" => {
            // A filter of no steps is none.
            assert!(filter::install(&mut [], Way::Seccomp).is_err());
            wait_often();
        }
        "run-filtered" => {
            use std::os::unix::process::CommandExt as _;
            let mut filter = filter::refusing(libc::SYS_ptrace, None, libc::EPERM);
            filter::install(&mut filter, Way::Inlined).unwrap();
            let me = std::env::current_exe().unwrap();
            panic!("{}", std::process::Command::new(me).arg("waits").exec());
        }
        "waits" => wait_often(),
        "closes-all" => return closes_all(),
        "raw-threads" => raw_threads(),
        "many-threads" => many_threads(arguments.next().unwrap().parse().unwrap()),
        "unmapped" => unmapped(),
        "without-a-way-back" => without_a_way_back(),
        "faults" => {
            wait_often();
            std::process::abort();
        }
        other => panic!("there is no `{other}`"),
    }
    println!("ok");
}

//! The names of the system calls in which threads sleep, for the processor of this command.

/// The operations of `futex` that wait: plain, with a bit set, with priority inheritance.
const FUTEX_WAITS: [u64; 5] = [0, 6, 9, 11, 13];
/// The bits of an operation that are not its command: private, and the clock.
const FUTEX_FLAGS: u64 = 128 | 256;

/// Returns the name of a system call that often waits. A rarer one is told by its number.
pub(crate) fn name(number: i64) -> Option<&'static str> {
    let calls = COMMON.iter().chain(ONLY_HERE);
    calls.into_iter().find(|call| call.0 == number).map(|call| call.1)
}

/// Returns the address of the word that a call waits for, if the call is a wait of `futex`, and
/// whether it waits without a time limit.
pub(crate) fn futex_word(number: i64, arguments: &[u64; 6]) -> Option<(u64, bool)> {
    let is_wait = || FUTEX_WAITS.contains(&(arguments[1] & !FUTEX_FLAGS));
    (name(number) == Some("futex") && is_wait()).then(|| (arguments[0], arguments[3] == 0))
}

/// Defines a table of system calls from the numbers of the C library.
macro_rules! calls {
    ($($number:ident $name:literal)*) => { &[$((libc::$number, $name)),*] };
}

/// The calls that x86-64 and 64-bit ARM both have.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
const COMMON: &[(libc::c_long, &str)] = calls! {
    SYS_futex "futex" SYS_futex_waitv "futex_waitv"
    SYS_read "read" SYS_write "write" SYS_readv "readv" SYS_writev "writev"
    SYS_pread64 "pread64" SYS_pwrite64 "pwrite64" SYS_sendfile "sendfile" SYS_splice "splice"
    SYS_preadv "preadv" SYS_pwritev "pwritev" SYS_preadv2 "preadv2" SYS_pwritev2 "pwritev2"
    SYS_copy_file_range "copy_file_range"
    SYS_nanosleep "nanosleep" SYS_clock_nanosleep "clock_nanosleep"
    SYS_epoll_pwait "epoll_pwait" SYS_epoll_pwait2 "epoll_pwait2" SYS_ppoll "ppoll"
    SYS_pselect6 "pselect6" SYS_io_uring_enter "io_uring_enter" SYS_io_getevents "io_getevents"
    SYS_accept "accept" SYS_accept4 "accept4" SYS_connect "connect"
    SYS_recvfrom "recvfrom" SYS_recvmsg "recvmsg" SYS_recvmmsg "recvmmsg"
    SYS_sendto "sendto" SYS_sendmsg "sendmsg" SYS_sendmmsg "sendmmsg"
    SYS_wait4 "wait4" SYS_waitid "waitid" SYS_rt_sigtimedwait "rt_sigtimedwait"
    SYS_rt_sigsuspend "rt_sigsuspend" SYS_restart_syscall "restart_syscall"
    SYS_openat "openat" SYS_close "close" SYS_fsync "fsync" SYS_fdatasync "fdatasync"
    SYS_sync_file_range "sync_file_range" SYS_fallocate "fallocate" SYS_ftruncate "ftruncate"
    SYS_flock "flock" SYS_fcntl "fcntl" SYS_ioctl "ioctl" SYS_getdents64 "getdents64"
    SYS_unlinkat "unlinkat" SYS_renameat2 "renameat2"
    SYS_mmap "mmap" SYS_munmap "munmap" SYS_mprotect "mprotect" SYS_madvise "madvise"
    SYS_brk "brk" SYS_msync "msync" SYS_membarrier "membarrier"
    SYS_semtimedop "semtimedop" SYS_msgrcv "msgrcv" SYS_msgsnd "msgsnd"
    SYS_mq_timedreceive "mq_timedreceive" SYS_mq_timedsend "mq_timedsend"
    SYS_clone "clone" SYS_clone3 "clone3" SYS_execve "execve" SYS_exit_group "exit_group"
    SYS_sched_yield "sched_yield"
};

/// The calls that x86-64 alone has.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const ONLY_HERE: &[(libc::c_long, &str)] = calls! {
    SYS_poll "poll" SYS_select "select" SYS_epoll_wait "epoll_wait" SYS_pause "pause"
    SYS_open "open" SYS_vfork "vfork" SYS_fork "fork" SYS_getdents "getdents"
};

/// The calls of this processor alone: none.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
const ONLY_HERE: &[(libc::c_long, &str)] = &[];

/// There are no system calls that are known on this system.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
const COMMON: &[(libc::c_long, &str)] = &[];

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_this_processor_have_names() {
        for (number, said) in [
            (libc::SYS_futex, "futex"),
            (libc::SYS_read, "read"),
            (libc::SYS_clock_nanosleep, "clock_nanosleep"),
            (libc::SYS_epoll_pwait, "epoll_pwait"),
        ] {
            assert_eq!(name(number), Some(said));
        }
        #[cfg(target_arch = "x86_64")]
        assert_eq!(
            (name(202), name(232), name(0)),
            (Some("futex"), Some("epoll_wait"), Some("read"))
        );
        #[cfg(target_arch = "aarch64")]
        assert_eq!(
            (name(98), name(22), name(63)),
            (Some("futex"), Some("epoll_pwait"), Some("read"))
        );
        assert_eq!(name(-1), None);
    }

    #[test]
    fn only_waits_of_futex_have_a_word() {
        let futex = libc::SYS_futex;
        assert_eq!(futex_word(futex, &[0x10, 128, 2, 0, 0, 0]), Some((0x10, true)));
        assert_eq!(futex_word(futex, &[0x10, 9 | 128 | 256, 2, 0x7f, 0, 0]), Some((0x10, false)));
        assert_eq!(futex_word(futex, &[0x10, 1 | 128, 1, 0, 0, 0]), None, "that one wakes");
        assert_eq!(futex_word(libc::SYS_read, &[0x10, 0, 0, 0, 0, 0]), None);
    }
}

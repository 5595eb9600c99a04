//! The names of the system calls in which threads wait.

/// Returns the name of a system call that often waits. A rarer one is told by its number.
pub(crate) fn name(number: i64) -> Option<&'static str> {
    CALLS.iter().chain(MORE).find(|call| call.0 == number).map(|call| call.1)
}

/// Defines a table of system calls from the numbers of the C library.
#[cfg(target_os = "linux")]
macro_rules! calls {
    ($($number:ident $name:literal)*) => { &[$((libc::$number, $name)),*] };
}

/// The calls that each processor has.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
const CALLS: &[(i64, &str)] = calls! {
    SYS_futex "futex" SYS_read "read" SYS_write "write" SYS_readv "readv" SYS_writev "writev"
    SYS_pread64 "pread64" SYS_pwrite64 "pwrite64" SYS_sendfile "sendfile" SYS_splice "splice"
    SYS_preadv "preadv" SYS_pwritev "pwritev" SYS_preadv2 "preadv2" SYS_pwritev2 "pwritev2"
    SYS_copy_file_range "copy_file_range" SYS_nanosleep "nanosleep"
    SYS_clock_nanosleep "clock_nanosleep" SYS_epoll_pwait "epoll_pwait"
    SYS_epoll_pwait2 "epoll_pwait2" SYS_ppoll "ppoll" SYS_pselect6 "pselect6"
    SYS_io_uring_enter "io_uring_enter" SYS_accept "accept" SYS_accept4 "accept4"
    SYS_connect "connect" SYS_recvfrom "recvfrom" SYS_recvmsg "recvmsg" SYS_recvmmsg "recvmmsg"
    SYS_sendto "sendto" SYS_sendmsg "sendmsg" SYS_sendmmsg "sendmmsg" SYS_wait4 "wait4"
    SYS_waitid "waitid" SYS_openat "openat" SYS_close "close" SYS_fsync "fsync"
    SYS_fdatasync "fdatasync" SYS_fallocate "fallocate" SYS_ftruncate "ftruncate"
    SYS_flock "flock" SYS_fcntl "fcntl" SYS_ioctl "ioctl" SYS_getdents64 "getdents64"
    SYS_unlinkat "unlinkat" SYS_renameat2 "renameat2" SYS_mmap "mmap" SYS_munmap "munmap"
    SYS_mprotect "mprotect" SYS_madvise "madvise" SYS_msync "msync" SYS_membarrier "membarrier"
    SYS_clone "clone" SYS_clone3 "clone3" SYS_execve "execve" SYS_restart_syscall "restart_syscall"
};

/// The calls that x86-64 alone has.
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64"))]
const MORE: &[(i64, &str)] = calls! {
    SYS_poll "poll" SYS_select "select" SYS_epoll_wait "epoll_wait" SYS_pause "pause"
    SYS_open "open" SYS_vfork "vfork" SYS_getdents "getdents"
};

/// The calls of this processor alone: none.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_pointer_width = "64")))]
const MORE: &[(i64, &str)] = &[];

/// There are no system calls that are known on this system.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
const CALLS: &[(i64, &str)] = &[];

#[cfg(all(test, target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn common_calls_have_names() {
        assert_eq!(name(libc::SYS_futex), Some("futex"));
        assert_eq!(name(libc::SYS_read), Some("read"));
        assert_eq!(name(-1), None);
    }
}

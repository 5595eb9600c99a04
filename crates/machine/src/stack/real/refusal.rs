//! The meaning of a refusal of memory by the system.

use std::fs::File;
use std::io::{self, Read};

use crate::stack::StackError;

/// The system call that has just failed.
pub(super) fn failed(call: &'static str) -> StackError {
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    StackError::Other { call, errno }
}

/// The system call that has just failed, and what it asked for.
pub(super) fn refused(call: &'static str, bytes: usize) -> StackError {
    match failed(call) {
        StackError::Other { errno: libc::ENOMEM, .. } => no_memory(bytes),
        other => other,
    }
}

/// One error number for three limits: which of them is it?
fn no_memory(bytes: usize) -> StackError {
    if let (Some(limit), Some(mappings)) = (limit_of_mappings(), mappings()) {
        // Splitting a mapping takes two more; the kernel's own are listed, but do not count.
        if mappings + 4 >= limit {
            return StackError::Mappings { limit };
        }
    }
    match limit_of_addresses() {
        Some(limit) => StackError::AddressSpace { bytes, limit },
        None => StackError::Memory { bytes },
    }
}

fn limit_of_mappings() -> Option<usize> {
    std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()
}

/// Counts the mappings: a line for each, in some megabytes of text.
fn mappings() -> Option<usize> {
    let mut maps = File::open("/proc/self/maps").ok()?;
    let mut part = [0; 4096];
    let mut lines = 0;
    loop {
        match maps.read(&mut part).ok()? {
            0 => return Some(lines),
            length => lines += part[..length].iter().filter(|byte| **byte == b'\n').count(),
        }
    }
}

/// Returns how many bytes of address space the process has, if the system tells.
pub(super) fn addresses(page: usize) -> Option<usize> {
    let mut text = [0; 128];
    let length = File::open("/proc/self/statm").ok()?.read(&mut text).ok()?;
    let pages = core::str::from_utf8(&text[..length]).ok()?.split_whitespace().next()?;
    pages.parse::<usize>().ok()?.checked_mul(page)
}

/// Returns how many bytes of address space the process may have, if that is limited.
pub(super) fn limit_of_addresses() -> Option<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the place is there and writable.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    (asked == 0 && limit.rlim_cur != libc::RLIM_INFINITY)
        .then(|| usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX))
}

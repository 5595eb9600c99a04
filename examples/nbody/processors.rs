//! `--processors`: which processors the program may use.

/// Keeps the calling thread, and all that it starts, to the first `wanted` of its processors.
#[cfg(target_os = "linux")]
pub(crate) fn keep_to(wanted: usize) -> Result<(), String> {
    let all = stanchion_machine::topology::processors();
    if wanted > all.len() {
        return Err(format!("--processors {wanted}: there are {}", all.len()));
    }
    // SAFETY: a set without processors is all zeros.
    let mut set: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    for processor in &all[..wanted] {
        if *processor >= 8 * size_of::<libc::cpu_set_t>() {
            return Err(format!("--processors: processor {processor} has too large a number"));
        }
        // SAFETY: the number is within the set.
        unsafe { libc::CPU_SET(*processor, &mut set) };
    }
    // SAFETY: the set is as large as is said.
    if unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } == 0 {
        return Ok(());
    }
    Err(format!("--processors {wanted}: {}", std::io::Error::last_os_error()))
}

/// Processors are chosen on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_to(wanted: usize) -> Result<(), String> {
    Err(format!("--processors {wanted}: wants Linux"))
}

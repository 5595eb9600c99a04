//! Questions to the kernel and the C library about restartable sequences.

use crate::kernel::{Missing, Rseq};

#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn rseq() -> Result<Rseq, Missing> {
    /// `AT_RSEQ_FEATURE_SIZE`, Linux 6.3.
    const FEATURE_SIZE: libc::c_ulong = 27;
    // SAFETY: looks a name up among the loaded libraries; the name ends with a zero.
    let registered = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
    if registered.is_null() {
        return Err(Missing::NotRegistered);
    }
    // SAFETY: glibc defines the name as an `unsigned int` that does not change after start-up.
    let registered = unsafe { registered.cast::<u32>().read() };
    if registered == 0 {
        return Err(Missing::NotRegistered);
    }
    // SAFETY: a look-up that answers 0 for what it does not know.
    let kernel = unsafe { libc::getauxval(FEATURE_SIZE) };
    Ok(Rseq { registered, kernel: u32::try_from(kernel).unwrap_or(u32::MAX) })
}

#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn slice_extension() -> Result<(), Missing> {
    /// `PR_RSEQ_SLICE_EXTENSION` and its `GET`, Linux 7.0.
    const SLICE_EXTENSION: libc::c_int = 79;
    const GET: libc::c_ulong = 1;
    const NOTHING: libc::c_ulong = 0;
    // SAFETY: only asks, and no argument is a pointer.
    let answer = unsafe { libc::prctl(SLICE_EXTENSION, GET, NOTHING, NOTHING, NOTHING) };
    if answer >= 0 {
        return rseq().map(|_| ());
    }
    Err(why_no_extension(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)))
}

/// Interprets the answers of the kernel.
#[cfg(all(target_os = "linux", not(miri)))]
fn why_no_extension(errno: i32) -> Missing {
    /// The kernel's own ENOTSUPP, which the C library does not know.
    const ENOTSUPP: i32 = 524;
    match errno {
        libc::EINVAL | libc::ENOSYS => {
            Missing::OldKernel { errno, needs: "Linux 7.0 with CONFIG_RSEQ_SLICE_EXTENSION" }
        }
        libc::ENXIO => Missing::NotRegistered,
        libc::EOPNOTSUPP | ENOTSUPP => Missing::SwitchedOff,
        errno => Missing::Other { errno },
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn rseq() -> Result<Rseq, Missing> {
    Err(Missing::NotLinux { os: std::env::consts::OS })
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn slice_extension() -> Result<(), Missing> {
    Err(Missing::NotLinux { os: std::env::consts::OS })
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn each_answer_of_the_kernel_has_its_reason() {
        for (errno, says) in [
            (libc::EINVAL, "Linux 7.0"),
            (libc::ENXIO, "glibc 2.35"),
            (524, "rseq_slice_ext=on"),
            (libc::EPERM, "error 1"),
        ] {
            let message = std::format!("{}", why_no_extension(errno));
            assert!(message.contains(says), "{message}");
        }
    }

    #[test]
    fn the_extension_is_had_only_with_rseq() {
        if slice_extension().is_ok() {
            assert!(rseq().unwrap().kernel > 32);
        }
        if let Ok(rseq) = rseq() {
            assert!(rseq.registered >= 20, "the first version had 20 bytes: {rseq}");
        }
    }
}

//! The processor's own counter, per architecture. Where there is none known, or under Miri, which
//! has none, [`invariant`] says `None` and nothing reads it.

pub(super) use arch::{INSTRUCTION, invariant, read, read_ordered, stated_rate};

/// Returns what the kernel keeps its time by. Reads a file.
pub(super) fn clocksource() -> Option<std::string::String> {
    if !cfg!(target_os = "linux") || cfg!(miri) {
        return None;
    }
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(path).ok().map(|name| name.trim().into())
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod arch {
    use core::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

    pub(in super::super) const INSTRUCTION: &str = "rdtsc";

    /// The counter.
    #[inline]
    pub(in super::super) fn read() -> u64 {
        // SAFETY: every x86_64 has the instruction; a kernel that forbids it to user programs
        // (prctl PR_SET_TSC) does so at the program's own request.
        unsafe { _rdtsc() }
    }

    /// The counter, not before what the program did before.
    #[inline]
    pub(in super::super) fn read_ordered() -> u64 {
        // SAFETY: part of SSE2, which every x86_64 has.
        unsafe { _mm_lfence() };
        read()
    }

    /// Returns whether it runs at one speed in every state of the processor.
    pub(in super::super) fn invariant() -> Option<bool> {
        const LAST_EXTENDED: u32 = 0x8000_0000;
        const POWER: u32 = 0x8000_0007;
        let known = __cpuid(LAST_EXTENDED).eax >= POWER;
        Some(known && __cpuid(POWER).edx & (1 << 8) != 0)
    }

    /// Ticks a second, if the processor states it reliably. The leaves that do (0x15, 0x16) are
    /// absent or rounded on too many.
    pub(in super::super) fn stated_rate() -> Option<u64> {
        None
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod arch {
    use core::arch::asm;

    pub(in super::super) const INSTRUCTION: &str = "cntvct_el0";

    /// The counter.
    #[inline]
    pub(in super::super) fn read() -> u64 {
        let ticks: u64;
        // SAFETY: reads a register that Linux leaves readable to user programs, or reads for them;
        // `invariant` says no elsewhere.
        unsafe {
            asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags))
        };
        ticks
    }

    /// The counter, not before what the program did before.
    #[inline]
    pub(in super::super) fn read_ordered() -> u64 {
        // SAFETY: a barrier without operands.
        unsafe { asm!("isb", options(nostack, preserves_flags)) };
        read()
    }

    /// The architecture demands one speed.
    pub(in super::super) fn invariant() -> Option<bool> {
        cfg!(target_os = "linux").then_some(true)
    }

    /// Ticks a second, as firmware has stored it.
    pub(in super::super) fn stated_rate() -> Option<u64> {
        let rate: u64;
        // SAFETY: as for the counter itself.
        unsafe {
            asm!("mrs {}, cntfrq_el0", out(reg) rate, options(nomem, nostack, preserves_flags))
        };
        (rate > 0).then_some(rate)
    }
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod arch {
    pub(in super::super) const INSTRUCTION: &str = "none";

    /// Stands in where nothing is known.
    #[inline]
    pub(in super::super) fn read() -> u64 {
        super::super::monotonic()
    }

    /// The same.
    #[inline]
    pub(in super::super) fn read_ordered() -> u64 {
        read()
    }

    /// There is none.
    pub(in super::super) fn invariant() -> Option<bool> {
        None
    }

    /// It counts nanoseconds.
    pub(in super::super) fn stated_rate() -> Option<u64> {
        Some(1_000_000_000)
    }
}

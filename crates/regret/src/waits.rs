//! A histogram of the acquisition times of a race: counts in classes, each of at most a sixteenth
//! of its start in width.

/// Classes of one power of two.
const FINE: u64 = 16;

/// Counts of waits.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    /// The number of waits in each class.
    counts: Vec<u64>,
    /// The most nanoseconds of one wait.
    longest: u64,
}

impl Default for Waits {
    fn default() -> Self {
        // Every class there can be, so that no thread allocates while it is measured.
        Self { counts: vec![0; class(u64::MAX) + 1], longest: 0 }
    }
}

/// Returns the class of a wait. Each wait below [`FINE`] has a class of its own. Above, the four
/// bits after the leading one choose among the classes of a power of two.
fn class(nanos: u64) -> usize {
    if nanos < FINE {
        return nanos as usize;
    }
    let power = nanos.ilog2() - FINE.ilog2();
    (u64::from(power + 1) * FINE + (nanos >> power) - FINE) as usize
}

/// Returns the least wait of a class.
fn start(class: usize) -> u64 {
    let (power, fine) = (class as u64 / FINE, class as u64 % FINE);
    if power == 0 { fine } else { (FINE + fine) << (power - 1) }
}

impl Waits {
    /// Counts an acquisition that took `nanos` nanoseconds.
    #[inline]
    pub(crate) fn note(&mut self, nanos: u64) {
        self.counts[class(nanos)] += 1;
        self.longest = self.longest.max(nanos);
    }

    /// Counts several acquisitions that took `nanos` nanoseconds each.
    #[cfg(target_os = "linux")]
    pub(crate) fn note_many(&mut self, nanos: u64, times: u64) {
        self.counts[class(nanos)] += times;
        self.longest = self.longest.max(nanos);
    }

    /// Adds the waits of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.longest = self.longest.max(other.longest);
    }

    /// Returns the time that `share` of all acquisitions did not exceed, in nanoseconds, up to the
    /// width of a class. Returns 0 if there were none.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let wanted = (share * self.count() as f64).ceil().max(1.0);
        let mut below = 0;
        for (class, count) in self.counts.iter().enumerate() {
            below += count;
            if below as f64 >= wanted {
                return start(class) as f64;
            }
        }
        0.0
    }

    /// Returns the number of waits.
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the longest wait, in nanoseconds.
    pub(crate) fn longest(&self) -> f64 {
        self.longest as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_order_without_gaps() {
        for nanos in (0..5_000).chain([1 << 40, (1 << 40) + 1, u64::MAX - 1, u64::MAX]) {
            let class = class(nanos);
            assert!(start(class) <= nanos, "{nanos}");
            assert!(nanos - start(class) <= nanos / FINE, "{nanos} is far above {}", start(class));
            assert!(class == self::class(u64::MAX) || start(class + 1) > nanos, "{nanos}");
        }
    }

    #[test]
    fn quantiles() {
        let mut waits = Waits::default();
        assert_eq!((waits.quantile(0.5), waits.longest()), (0.0, 0.0));
        for _ in 0..99 {
            waits.note(10);
        }
        let mut other = Waits::default();
        other.note(1_000);
        waits.add(&other);
        assert_eq!(waits.quantile(0.5), 10.0);
        assert_eq!(waits.quantile(0.99), 10.0);
        assert_eq!(waits.quantile(0.999), 992.0);
        assert_eq!(waits.longest(), 1_000.0);
    }
}

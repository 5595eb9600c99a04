//! The fixed point of a continuous function of an interval into itself.
//!
//! The obvious way, and the paper's, is to apply the function again and again. That finds the point
//! if the function is flat there. If it falls steeply, as it does where a full lock and a full bus
//! answer each other, that swings for ever between two values. Halving the interval always works,
//! slowly. So: apply while each step comes twice as near, halve when one does not.
//!
//! Invariant 1: at the lower end the function is at or above the diagonal, at the upper end at or
//! below it. So there is a fixed point between them.

use super::ContentionError;

/// Steps after which there is no hope: halving alone comes to the last digit in 64.
const STEPS: u32 = 1_000;
/// The distance that counts as reached, as a share of the number.
const NEAR: f64 = 1e-10;

/// Finds a fixed point of `apply` in `least..=most` and returns what `apply` said there, with the
/// number of steps.
///
/// `apply` returns the function's value and whatever else it found out.
pub(super) fn settle<T>(
    least: f64,
    most: f64,
    mut apply: impl FnMut(f64) -> Result<(f64, T), ContentionError>,
) -> Result<(T, u32), ContentionError> {
    let (mut low, mut high) = (least, most);
    let (mut at, mut off) = (least, f64::INFINITY);
    for step in 1..=STEPS {
        let (then, found) = apply(at)?;
        let before = off;
        off = (then - at).abs();
        if off <= NEAR * at {
            return Ok((found, step));
        }
        // Invariant 1.
        if then > at {
            low = at;
        } else {
            high = at;
        }
        let inside = low <= then && then <= high;
        at = if inside && off < 0.5 * before { then } else { low + 0.5 * (high - low) };
    }
    Err(ContentionError::NotConverged { steps: STEPS, at, off })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(least: f64, most: f64, f: impl Fn(f64) -> f64) -> Result<(f64, u32), ContentionError> {
        settle(least, most, |at| Ok((f(at), at)))
    }

    #[test]
    fn flat_functions_take_the_papers_steps() {
        let (at, steps) = run(1.0, 20.0, |x| 5.0 + 0.1 * x).unwrap();
        assert!((at - 50.0 / 9.0).abs() < 1e-8 && steps < 15, "{at} in {steps}");
        assert_eq!(run(1.0, 20.0, |_| 1.0).unwrap(), (1.0, 1));
        assert_eq!(run(1.0, 20.0, |_| 20.0).unwrap().0, 20.0);
        assert_eq!(run(1.0, 1.0, |_| 1.0).unwrap(), (1.0, 1));
    }

    /// Applied again and again, this one swings between 1 and 20.
    #[test]
    fn steep_ones_are_halved() {
        let swings = |x: f64| if x < 7.0 { 20.0_f64.min(7.0 + 40.0 * (7.0 - x)) } else { 1.0 };
        let steep = |x: f64| swings(x).max(7.0 - 40.0 * (x - 7.0)).clamp(1.0, 20.0);
        let (at, steps) = run(1.0, 20.0, steep).unwrap();
        assert!((at - 7.0).abs() < 1e-8 && steps < 100, "{at} in {steps}");
    }

    #[test]
    fn what_jumps_over_itself_is_an_error() {
        let jumps = |x: f64| if x < 7.0 { 9.0 } else { 5.0 };
        let Err(ContentionError::NotConverged { steps, at, off }) = run(1.0, 20.0, jumps) else {
            panic!("settled where there is no fixed point");
        };
        assert!(steps == STEPS && (at - 7.0).abs() < 1e-9 && (off - 2.0).abs() < 1e-9);
        let said = ContentionError::NotConverged { steps, at, off }.to_string();
        assert!(said.contains("no agreement after 1000 steps"), "{said}");
    }
}

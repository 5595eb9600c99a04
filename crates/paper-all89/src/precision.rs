//! The precision of the measurements by which figures 4.1 to 4.3 are judged.

use stanchion_study::context::Context;
use stanchion_study::measure::Precision;

/// The largest excess of the upper end of a confidence interval over the lower, as a share: the
/// limits of figure 4.1's rule, 1.5 and 2, differ by a third.
pub(crate) const WIDTH: f64 = 0.5;

/// Returns the number of measurements of a cell: quickly from three to seven, else nine.
pub(crate) fn precision(context: &Context) -> Precision {
    context.pick(
        Precision { least: 3, most: 7, width: WIDTH },
        Precision { least: 9, most: 9, width: WIDTH },
    )
}

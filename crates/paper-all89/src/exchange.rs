//! The counterfactual of figures 4.1 and 4.2 on Symmetry A: an exchange that keeps its location
//! from others for longer.
//!
//! An exchange takes 2.8 µs (half of table 3.1's lock and unlock). The model occupies the bus, and
//! with it the location, for the two transfers of the exchange only, 0.5 µs. The paper says more:
//! "a copy of the memory location is brought into the processor's cache, modified there, and then
//! written back to memory. Any requests for that memory location in the interim are delayed until
//! the processor is done modifying it" (section 4.1). It does not say how long that takes. It is at
//! least the two transfers, and at most the whole exchange, less the jitter that must fit in it.
//!
//! "The atomicity of the xchgb operation is enforced by the bus" (section 4.1). So the runs keep
//! the bus for as long as the location, also from requests for other locations.

use stanchion_simulator::machine::Memory;
use stanchion_simulator::{Machine, Time};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::Counterfactual;
use stanchion_study::outcome::{Found, Outcome};

/// Returns the counterfactual of an experiment that `run` runs with a size.
pub(crate) const fn locked(
    run: fn(&Context, &Machine, f64) -> Result<Found, Stop>,
) -> Counterfactual {
    Counterfactual {
        name: "a location that an exchange keeps locked until the processor is done",
        piece: "“Any requests for that memory location in the interim are delayed until the \
                processor is done modifying it” (section 4.1); the model delays them for the \
                two transfers of an exchange, 0.5 µs, and not for the rest of its 2.8 µs.",
        size: "ns",
        sizes: &[500.0, 1_000.0, 1_400.0, 1_900.0, 2_400.0, 2_600.0],
        figure: "figures",
        run,
    }
}

/// Calls `run` on `machine` with exchanges that keep bus and location for `nanos`.
pub(crate) fn found(
    run: fn(&Context, &Machine) -> Result<Outcome, Stop>,
    context: &Context,
    machine: &Machine,
    nanos: f64,
) -> Result<Found, Stop> {
    let mut machine = machine.clone();
    if let Memory::WriteThrough(times) = &mut machine.memory {
        times.exchange_bus = Time::nanos(nanos as u64);
    }
    let verdict = run(context, &machine)?.verdict;
    Ok(Found { figure: verdict.because().to_owned(), verdict })
}

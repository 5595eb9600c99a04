//! The figures of the paper's tables beside those of the simulated Firefly. They are lost in our
//! copy of the paper. The list of experiments has them.

use stanchion_simulator::machines;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::Paper;
use stanchion_study::simulation::failed;
use stanchion_study::stated::{Stated, Unit};

use super::setting::System;
use super::{simulated, table5, upcall};

const TABLE4: (Paper, &str) = (Paper::Sa92, "table IV");
const SECTION: (Paper, &str) = (Paper::Sa92, "section 5.2");

fn micros(micros: f64) -> (Unit, f64) {
    (Unit::Nanos, micros * 1e3)
}

/// Returns the figures that the paper states, and those that our Firefly takes.
///
/// # Errors
///
/// If the simulation fails or the user stops it.
pub fn stated(context: &Context) -> Result<Vec<Stated>, Stop> {
    let machine = machines::firefly();
    let [_, through] = upcall::through(&machine)?;
    let mut all = vec![
        Stated::input(TABLE4, "Null Fork, user threads on kernel threads", micros(34.0)),
        Stated::input(TABLE4, "Signal-Wait, user threads on kernel threads", micros(37.0)),
        Stated::input(TABLE4, "Null Fork, user threads on activations", micros(37.0)),
        Stated::input(TABLE4, "Signal-Wait, user threads on activations", micros(42.0)),
        Stated::input(TABLE4, "Null Fork, kernel threads", micros(948.0)),
        Stated::input(TABLE4, "Signal-Wait, kernel threads", micros(441.0)),
        Stated::not_comparable(TABLE4, "processes", "no simulated machine has processes"),
        Stated::computed(SECTION, "Signal-Wait through the kernel", micros(2_400.0), through, None),
    ];
    let what = ["Null Fork", "Signal-Wait"];
    for (on, theirs) in [(false, [34.0, 37.0]), (true, [37.0, 42.0])] {
        let found = simulated::operations(&machine, on).map_err(|why| failed(&machine, &why))?;
        let system = if on { System::Activations } else { System::User };
        for ((what, theirs), ours) in what.into_iter().zip(theirs).zip(found) {
            let what = format!("{what}, ours, {}", system.name());
            all.push(Stated::computed(TABLE4, what, micros(theirs), ours, None));
        }
    }
    for (system, theirs, ours) in table5::speed_ups(context, &machine)? {
        let what = format!("two copies, {}", system.name());
        let place = (Paper::Sa92, "table V");
        all.push(Stated::computed(place, what, (Unit::Times, theirs), ours, None));
    }
    Ok(all)
}

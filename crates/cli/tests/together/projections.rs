//! The queueing model's projections, as a user gets them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Place, text};
use serde_json::Value;

fn results(place: &Place, name: &str, figures: &[&str]) -> Value {
    let out = place.path(name);
    let done = Command::new(env!("CARGO_BIN_EXE_stanchion"))
        .arg("study")
        .args(figures)
        .args(["--machine", "simulated", "--quick", "--out", &out])
        .output()
        .expect("it can be started");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let written = fs::read_to_string(Path::new(&out).join("simulated.json"));
    let results: Value =
        serde_json::from_str(&written.expect("it was written")).expect("it is JSON");
    results["experiments"].clone()
}

/// They hold with the inputs that are fitted to the paper's machine, and are the same on every run.
#[test]
fn projections_hold_and_do_not_depend_on_the_run() {
    let place = Place::new("projections");
    let once = results(&place, "once", &["fig5.2", "fig5.3", "fig5.4"]);
    let again = results(&place, "again", &["fig5.4"]);
    let [grain, load, processors] = &once.as_array().expect("a list")[..] else {
        panic!("three were chosen: {once}");
    };
    for one in [grain, load, processors] {
        assert_eq!(one["verdict"]["is"], "holds", "{}", one["verdict"]["because"]);
    }
    assert_eq!(processors["pictures"], again[0]["pictures"]);
    // The rate of a central queue rises, and ends lower than it was with a third of the processors.
    let series = processors["pictures"][0]["series"].as_array().expect("a list");
    let central = series.iter().find(|series| series["name"] == "central ready queue");
    let rate = |processors: f64| {
        let points = central.expect("it is drawn")["points"].as_array().expect("a list");
        let at = points.iter().find(|point| point[0] == processors).expect("it is drawn");
        at[1].as_f64().expect("a number")
    };
    assert!(rate(60.0) > 1.4 * rate(40.0));
    assert!(rate(120.0) < rate(40.0) / 2.0);
}

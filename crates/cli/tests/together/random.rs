//! Random grids of the study of regret, as a user runs them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Place, text};
use serde_json::Value;

/// Runs random cells with short windows and returns the experiment's data.
fn random(place: &Place, more: &[&str]) -> Value {
    let out = place.path("out");
    let short = ["--rounds", "1", "--window-ms", "2", "--out", &out];
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    command.args(["study", "regret"]).args(more).args(short);
    let done = command.output().expect("it can be started");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    for part in ["noise", "processor time"] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    let text = fs::read_to_string(Path::new(&out).join("results.json")).expect("it was written");
    let mut results: Value = serde_json::from_str(&text).expect("it is JSON");
    results["experiments"][0]["data"].take()
}

#[test]
fn regret_over_random_cells_which_can_be_measured_again() {
    let place = Place::new("random");
    let grid = random(&place, &["--random", "3", "--seed", "7", "--contestants", "std"]);
    let cells = grid["cells"].as_array().unwrap();
    let regret = |cell: &Value| cell["contestants"][0]["regret"].as_f64().unwrap();
    assert!(cells.windows(2).all(|pair| regret(&pair[0]) >= regret(&pair[1])), "worst first");
    let mut names: Vec<&str> = cells.iter().map(|cell| cell["cell"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["locks:7:0", "locks:7:1", "locks:7:2"], "no cell is dropped");
    for cell in cells {
        let names: Vec<&str> = (cell["contestants"].as_array().unwrap().iter())
            .map(|contestant| contestant["contestant"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["Adaptive", "std", "Adaptive again"]);
    }
    let cell = &cells[0];
    let again = random(&place, &["--replay", cell["cell"].as_str().unwrap()]);
    assert_eq!(again["cells"].as_array().unwrap().len(), 1);
    assert_eq!(again["cells"][0]["parameters"], cell["parameters"]);
}

/// The families with races of the contests, of which one starts this program once more.
#[cfg(target_os = "linux")]
#[test]
fn other_families_have_cells() {
    for family in ["barriers", "bounded-queues", "spinlocks", "counters", "pools"] {
        let place = Place::new(family);
        let grid = random(&place, &["--random", "1", "--seed", "5", "--quick", "--family", family]);
        assert_eq!(grid["family"], family);
        let contestants = grid["cells"][0]["contestants"].as_array().unwrap();
        let last = contestants.last().unwrap()["contestant"].as_str().unwrap();
        assert!(last.ends_with(" again"), "{last}");
        assert!(contestants.len() >= 3, "{family}: {contestants:?}");
        for contestant in contestants {
            assert!(contestant["regret"].as_f64().unwrap() > 0.0, "{family}: {contestant}");
            assert!(contestant["median"]["throughput"].as_f64().unwrap() > 0.0, "{contestant}");
        }
    }
}

//! `stanchion study --share` and `stanchion compare` as a user runs them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use stanchion_study::host::Host;

use crate::common::{Place, text};

fn stanchion(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stanchion")).args(arguments).output().unwrap()
}

/// Makes an output folder with a grid of mutexes of this computer.
fn folder(place: &Place, name: &str, cells: usize) -> String {
    let here = Host::here();
    let figures = |throughput: f64| json!({"throughput": throughput, "cost": 9.0, "tail": null, "fair": true});
    let cell = |index: usize| {
        json!({
            "name": format!("locks:7:{index}"), "threads": 2, "length_ns": 10.0, "hogs": 0,
            "figures": [figures(10.0), figures(8.0 + index as f64)],
        })
    };
    let grid = json!({
        "family": "locks", "written": 9_999_999_999_u64, "seed": 7, "version": here.stanchion,
        "processor": here.processor, "processors": here.parallelism, "brief": true,
        "contestants": ["Adaptive", "std"], "peers": [false, true],
        "cells": (0..cells).map(cell).collect::<Vec<Value>>(),
    });
    let out = place.path(name);
    fs::create_dir_all(&out).unwrap();
    let kept = json!({"schema": "stanchion-grids/1", "grids": [grid]});
    fs::write(Path::new(&out).join("grids.json"), kept.to_string()).unwrap();
    out
}

#[test]
fn what_a_folder_has_is_shared_without_measuring_and_compared() {
    let place = Place::new("share");
    let (one, two) = (folder(&place, "one", 4), folder(&place, "two", 5));
    let [mine, other] = ["mine.json", "other.json"].map(|name| place.path(name));
    for (out, file) in [(&one, &mine), (&two, &other)] {
        let done = stanchion(&["study", "--output", out, "--share", file]);
        let said = text(&done.stdout);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        let written = fs::read_to_string(file).unwrap();
        assert!(said.contains(written.trim_end()), "its whole content is printed: {said}");
        assert!(said.contains("nothing is measured"), "{said}");
        assert!(said.contains("shared: ") && said.contains("--family rwlocks"), "{said}");
        assert!(!written.contains("9999999999") && !written.contains(&place.path("")), "{written}");
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        assert!(host.trim().len() < 4 || !written.contains(host.trim()), "{written}");
        assert!(Path::new(out).join("share-number.txt").exists());
        assert!(!Path::new(out).join("report.html").exists(), "nothing was run");
    }
    let out = place.path("compared");
    let compare = |more: &[&str]| {
        let arguments = [&["compare", &mine, &other, "--output", &out], more].concat();
        let done = stanchion(&arguments);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        text(&done.stdout)
    };
    let said = compare(&[]);
    assert!(said.contains("1 computer:") && said.contains("add --distinct"), "{said}");
    let said = compare(&["--distinct"]);
    assert!(said.contains("2 computers:"), "{said}");
    // Regrets of the second are 10/8 at most, of ours 11/10 in the last of four cells.
    let safe = "safe on all: stanchion Mutex; at worst the best is 1.10 times as fast";
    assert!(said.contains(safe), "{said}");
    assert!(said.chars().all(|c| c == '\n' || !c.is_control()), "{said}");
    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.contains("2 computers, 4 cells each"), "{page}");
}

#[test]
fn what_cannot_be_shared_or_compared_is_refused() {
    let place = Place::new("unshared");
    let (empty, out, file) =
        (place.path("empty"), folder(&place, "out", 4), place.path("mine.json"));
    let nowhere = place.path("nowhere/mine.json");
    for (arguments, said) in [
        (
            &["study", "fig3.5", "--output", &empty, "--share", &file][..],
            "there is nothing to share",
        ),
        (
            &["study", "--machine", "simulated", "--share", &file],
            "--share is for experiments on this",
        ),
        (&["study", "--output", &out, "--share", &nowhere], "--share FILE"),
        (&["study", "--list", "--share", &file], "cannot be used with"),
        (&["compare"], "required"),
        (&["compare", &nowhere], "Name a file that `stanchion study --share` wrote"),
    ] {
        let refused = stanchion(arguments);
        let error = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    assert!(!Path::new(&file).exists());
    assert_eq!(stanchion(&["study", "--output", &out, "--share", &file]).status.code(), Some(0));
    let whole = fs::read_to_string(&file).unwrap();
    let (bad, compared) = (place.path("bad.json"), place.path("compared"));
    for (content, said) in [
        (whole[..whole.len() / 2].to_owned(), "it was cut off in line"),
        (whole.replace("stanchion-share/1", "stanchion-share/2"), "this version reads"),
        (whole.replace("\"distributions\":1", "\"distributions\":2"), "from distributions 1 and 2"),
        ("{}".to_owned(), "it is no shared file"),
    ] {
        fs::write(&bad, content).unwrap();
        let refused = stanchion(&["compare", &file, &bad, "--output", &compared]);
        let error = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{error}");
        assert!(error.contains(said) && error.contains(&bad), "{said}: {error}");
        assert!(refused.stdout.is_empty() && !Path::new(&compared).exists());
    }
}

#[test]
fn a_named_experiment_runs_before_the_folder_is_shared() {
    let place = Place::new("runs");
    let (out, file) = (folder(&place, "out", 4), place.path("mine.json"));
    let done = stanchion(&["study", "fig3.5", "--quick", "--output", &out, "--share", &file]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(Path::new(&out).join("report.html").exists() && Path::new(&file).exists());
    let said = text(&done.stdout);
    assert!(said.find("report: ").unwrap() < said.find("shared: ").unwrap(), "{said}");
}

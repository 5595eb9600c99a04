//! The command as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{Place, text};
use serde_json::Value;

fn stanchion(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stanchion"))
        .args(arguments)
        .output()
        .expect("it can be started")
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("it was written")).expect("it is JSON")
}

#[test]
fn list_names_all_and_runs_nothing() {
    let place = Place::new("list");
    let out = place.path("out");
    let listed = stanchion(&["study", "--list", "--out", &out]);
    assert_eq!(listed.status.code(), Some(0));
    let listed = text(&listed.stdout);
    for id in [
        "all89/table3.1",
        "all89/fig5.4",
        "klmo91/table4",
        "sa92/upcall",
        "fr92/fig9",
        "ms97/fig7",
        "regsim",
    ] {
        assert!(listed.contains(id), "{id} is missing:\n{listed}");
    }
    assert!(listed.contains("45 experiments"), "{listed}");
    assert!(listed.contains("Scheduler activations, 1992: 5 experiments"), "{listed}");
    assert!(!Path::new(&out).exists());

    let some = text(&stanchion(&["study", "--list", "fig4.?"]).stdout);
    assert!(some.contains("3 experiments; the times"), "{some}");
}

#[test]
fn unknown_id_names_the_nearest() {
    let place = Place::new("unknown");
    let out = place.path("out");
    let refused = stanchion(&["study", "all89/fig41", "--out", &out]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("`all89/fig41`") && said.contains("all89/fig4.1"), "{said}");
    assert!(!Path::new(&out).exists(), "nothing is made for a wrong command line");
}

#[test]
fn a_choice_of_nothing_that_runs_is_refused_and_leaves_the_last_report() {
    let place = Place::new("nothing");
    fs::write(place.path("report.html"), "the last one").unwrap();
    let out = place.path("");
    let refused = stanchion(&["study", "regsim", "--machine", "modern", "--out", &out]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("regsim") && said.contains("nothing of it runs on"), "{said}");
    assert!(refused.stdout.is_empty());
    assert_eq!(fs::read_to_string(place.path("report.html")).unwrap(), "the last one");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "nothing was added");
}

#[test]
fn bad_flags_are_refused() {
    for arguments in [
        &["study", "--quik"][..],
        &["study", "--seed", "many"],
        &["study", "--seed", "-1"],
        &["study", "--out"],
        &["machine", "fig4.1"],
        &["stady"],
        &[],
    ] {
        let refused = stanchion(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(!refused.stderr.is_empty(), "{arguments:?}");
    }
    let help = stanchion(&["study", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("Exit codes"));
}

#[test]
fn unwritable_places_are_refused_before_anything_runs() {
    let place = Place::new("unwritable");
    let file = place.path("file");
    fs::write(&file, "not a directory").unwrap();
    let below = format!("{file}/out");
    for out in [&file, &below] {
        let refused = stanchion(&["study", "fig3.5", "--quick", "--out", out]);
        assert_eq!(refused.status.code(), Some(2), "{out}");
        let said = text(&refused.stderr);
        assert!(said.contains("cannot write to") && said.contains("nothing was run"), "{said}");
        assert!(refused.stdout.is_empty());
    }
    let out = place.path("out");
    for json in [place.path("nowhere/results.json"), place.path("")] {
        let refused = stanchion(&["study", "fig3.5", "--quick", "--out", &out, "--json", &json]);
        assert_eq!(refused.status.code(), Some(2), "{json}");
        assert!(text(&refused.stderr).contains("--json FILE"), "{json}");
    }
}

#[test]
fn one_experiment_from_end_to_end() {
    let place = Place::new("end-to-end");
    let (out, copy) = (place.path("out"), place.path("copy.json"));
    let done = stanchion(&[
        "study",
        "fig3.5",
        "all89/fig5.1",
        "--quick",
        "--seed",
        "7",
        "--out",
        &out,
        "--json",
        &copy,
    ]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    assert!(said.contains("all89/fig3.5") && said.contains("holds"), "{said}");

    let results = json(&Path::new(&out).join("results.json"));
    assert_eq!(results, json(Path::new(&copy)));
    assert_eq!(results["schema"], "stanchion-study/1");
    assert_eq!(results["complete"], true);
    assert_eq!((&results["seed"], &results["quick"]), (&Value::from(7), &Value::from(true)));
    assert!(!results["machine"]["processors"].as_array().unwrap().is_empty());
    let [ran, waiting] = &results["experiments"].as_array().unwrap()[..] else {
        panic!("two were chosen: {results}");
    };
    assert_eq!(waiting["id"], "all89/fig5.1");
    assert_eq!(waiting["verdict"]["is"], "not_run");
    assert!(waiting["verdict"]["because"].as_str().unwrap().contains("the bus of this computer"));
    assert_eq!(waiting["seconds"], Value::Null);
    assert_eq!(ran["verdict"]["is"], "holds");
    let series = ran["pictures"][0]["series"].as_array().unwrap();
    assert_eq!(series.len(), 2);
    // E(1, 18) = 9.5, at 18 runnable threads, exactly.
    assert_eq!(series[0]["points"][17], serde_json::json!([18.0, 9.5]));

    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    for part in [
        "<!DOCTYPE html>",
        "<svg role=\"img\"",
        "all89/fig3.5",
        "9.50",
        "Not run",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(part), "{part} is missing from the page");
    }
    for outside in ["<script", "<link", "@import", "url(", "src="] {
        assert!(!page.contains(outside), "the page reaches outside itself: {outside}");
    }
    let left: Vec<_> =
        fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "only the report and the results are left: {left:?}");
}

#[test]
fn the_same_seed_gives_the_same_walks() {
    let place = Place::new("seed");
    let series = |name: &str, seed: &str| {
        let out = place.path(name);
        let done = stanchion(&["study", "fig3.5", "--quick", "--seed", seed, "--out", &out]);
        assert_eq!(done.status.code(), Some(0));
        json(&Path::new(&out).join("results.json"))["experiments"][0]["pictures"].clone()
    };
    let first = series("a", "1");
    assert_eq!(first, series("b", "1"));
    assert_ne!(first, series("c", "2"));
}

#[test]
fn json_on_standard_output_is_nothing_but_json() {
    let place = Place::new("stdout");
    let done =
        stanchion(&["study", "fig3.5", "--quick", "--out", &place.path("out"), "--json", "-"]);
    let results: Value =
        serde_json::from_slice(&done.stdout).expect("only JSON on standard output");
    assert_eq!(results["experiments"][0]["id"], "all89/fig3.5");
    assert!(text(&done.stderr).contains("report:"));
}

#[test]
fn machine_prints_text_and_json() {
    let printed = stanchion(&["machine", "--json"]);
    assert_eq!(printed.status.code(), Some(0), "{}", text(&printed.stderr));
    let machine: Value = serde_json::from_slice(&printed.stdout).expect("only JSON");
    assert_eq!(machine["schema"], "stanchion-machine/1");
    for cost in machine["costs"].as_array().unwrap() {
        let nanos = cost["nanos"].as_f64();
        let why = cost["not_measured"].as_str();
        assert!(nanos.is_some_and(|nanos| nanos >= 0.0) || why.is_some(), "{cost}");
    }
    let facilities: Vec<&str> =
        machine["kernel"].as_array().unwrap().iter().filter_map(|f| f["what"].as_str()).collect();
    assert_eq!(facilities, ["membarrier", "presence", "rseq", "time-slice extension"]);
    let text = text(&stanchion(&["machine"]).stdout);
    for line in [
        "processors usable",
        "words kept apart by",
        "atomic fetch_add",
        "pause hint",
        "futex round trip",
        "presence",
    ] {
        assert!(text.contains(line), "{line} is missing:\n{text}");
    }
}

#[test]
fn a_machine_that_is_not_there_is_refused_with_the_nearest() {
    let place = Place::new("machine");
    let out = place.path("out");
    let cases: [(&[&str], &str); 6] = [
        (&["--machine", "symetry-a"], "nearest: symmetry-a"),
        (&["--machine", ""], "there are real, simulated"),
        (&["--machine"], "--machine"),
        (
            &["regret", "--machine", "simulated"],
            "regret: nothing of it runs on a simulated machine",
        ),
        (&["fig3.5", "--machine", "firefly"], "leave out --machine"),
        (
            &["fig3.5", "--machine", "simulated", "--rounds", "3"],
            "--rounds is for experiments on this computer",
        ),
    ];
    for (arguments, part) in cases {
        let refused = stanchion(&[&["study", "--quick", "--out", &out], arguments].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        let said = text(&refused.stderr);
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    assert!(!Path::new(&out).exists(), "nothing is made for a wrong command line");
}

#[test]
fn a_description_is_read_from_a_file_and_a_wrong_one_is_refused() {
    let place = Place::new("described");
    let (out, file) = (place.path("out"), place.path("machine.json"));
    let run =
        |file: &str| stanchion(&["study", "table3.1", "--quick", "--machine", file, "--out", &out]);
    let machine = stanchion_simulator::machines::firefly().to_json();
    std::fs::write(&file, machine.replace("firefly", "fly")).unwrap();
    let done = run(&file);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let results = std::fs::read_to_string(Path::new(&out).join("simulated.json")).unwrap();
    assert!(results.contains("\"fly\""), "{results}");
    for (description, part) in [
        (Some(machine.replace("\"processors\": 6", "\"processors\": 0")), "processors is 0"),
        (Some("{".to_owned()), "describes no machine"),
        (None, "cannot read the machine's description"),
    ] {
        match description {
            Some(text) => std::fs::write(&file, text).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        let refused = run(&file);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{part} is missing: {said}");
    }
}

#[test]
fn calibrate_compares_what_was_chosen() {
    let done = stanchion(&["calibrate", "ticket", "Mcs", "--machine", "modern", "--runs", "1"]);
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let rows = |name: &str| said.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!([rows("Ticket"), rows("Mcs"), rows("Clh")], [1, 1, 0], "{said}");
    let refused = stanchion(&["calibrate", "hemlock"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("there are TestAndSet"), "{}", text(&refused.stderr));
}

#[test]
fn simulated_results_stand_beside_the_real_ones() {
    let place = Place::new("beside");
    let out = place.path("out");
    let study = |more: &[&str]| {
        let done = stanchion(&[&["study", "--quick", "--out", &out], more].concat());
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        text(&done.stdout)
    };
    let page = || fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    study(&["all89/table3.1"]);
    assert!(page().contains("this computer") && !page().contains("Not run"), "{}", page());
    let real = fs::read(Path::new(&out).join("results.json")).unwrap();

    let said = study(&["all89/table3.1", "fig3.5", "regret", "--machine", "simulated"]);
    assert!(said.contains("regret"), "what does not run there is named: {said}");
    assert_eq!(fs::read(Path::new(&out).join("results.json")).unwrap(), real);
    let simulated = json(&Path::new(&out).join("simulated.json"));
    assert_eq!(simulated["schema"], "stanchion-simulated/1");
    for host in ["written", "machine"] {
        assert_eq!(simulated.get(host), None, "{host} is of the host");
    }
    for entry in simulated["experiments"].as_array().unwrap() {
        assert!(entry["seconds"].is_null(), "wall time: {entry}");
    }
    let on = "symmetry-a, 20 processors, simulated";
    for part in ["from results.json of 20", "this computer", on, "Not run", "all89/fig3.5"] {
        assert!(page().contains(part), "{part} is missing");
    }

    fs::write(Path::new(&out).join("results.json"), "{}").unwrap();
    let done = stanchion(&["study", "fig3.5", "--quick", "--machine", "simulated", "--out", &out]);
    assert_eq!(done.status.code(), Some(0));
    let said = text(&done.stderr);
    assert!(said.contains("cannot read the results") && said.contains("results.json"), "{said}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let place = Place::new("bytes");
    let bytes = |name: &str, seed: &str| {
        let out = place.path(name);
        let machine = ["--machine", "simulated", "--quick", "--seed", seed, "--out", &out];
        let done = stanchion(&[&["study", "all89/sec5.1"], &machine[..]].concat());
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        fs::read(Path::new(&out).join("simulated.json")).unwrap()
    };
    let first = bytes("a", "1");
    assert!(first == bytes("b", "1"), "two runs of one seed differ");
    // The file also names its seed.
    let counted = |bytes: &[u8]| {
        let results: Value = serde_json::from_slice(bytes).expect("it is JSON");
        results["experiments"][0]["pictures"].clone()
    };
    assert_ne!(counted(&first), counted(&bytes("c", "2")), "the seed has no effect");
}

/// Interrupted while it runs: what was finished is written, the rest says why not.
#[cfg(unix)]
#[test]
fn interrupted_leaves_the_finished_part() {
    let place = Place::new("interrupt");
    let out = place.path("out");
    let mut running = Command::new(env!("CARGO_BIN_EXE_stanchion"))
        .args(["study", "fig3.5", "fig4.1", "regsim", "--quick", "--out", &out])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it can be started");
    // The first experiment is done once the results are there; fig4.1 then takes half a minute.
    let results = Path::new(&out).join("results.json");
    let began = std::time::Instant::now();
    while !results.exists() {
        assert!(began.elapsed().as_secs() < 120, "the first experiment did not end");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // SAFETY: a plain system call; the process is our child and has not been waited for, so the
    // number is still its own.
    let sent = unsafe { libc::kill(running.id().cast_signed(), libc::SIGINT) };
    assert_eq!(sent, 0);
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let results = json(&results);
    assert_eq!(results["complete"], false);
    let because = |index: usize| results["experiments"][index]["verdict"]["because"].to_string();
    assert_eq!(results["experiments"][0]["verdict"]["is"], "holds");
    // The signal may come before the second experiment has begun.
    let reasons = ["interrupted while it ran", "the study was interrupted before its turn"];
    assert!(reasons.iter().any(|reason| because(1).contains(reason)), "{}", because(1));
    assert!(because(2).contains(reasons[1]), "{}", because(2));
    assert!(Path::new(&out).join("report.html").exists());
}

/// The experiment `regret`, as small as it can be.
fn regret(out: &str, more: &[&str]) -> Output {
    let mut arguments = vec!["study", "regret", "--out", out];
    arguments.extend(more);
    stanchion(&arguments)
}

#[test]
fn regret_over_a_small_grid() {
    let place = Place::new("regret");
    let out = place.path("out");
    let cells = "2t-100ns-4x,phases,sleeper";
    let who = "adaptive,std,parking_lot";
    let more = ["--cells", cells, "--contestants", who, "--rounds", "2", "--window-ms", "2"];
    let done = regret(&out, &more);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    for part in ["2t-100ns-4x-hogs", "worst regret", "again", "noise"] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    let results = json(&Path::new(&out).join("results.json"));
    let data = &results["experiments"][0]["data"];
    let cells = data["cells"].as_array().unwrap();
    let names: Vec<&str> = cells.iter().filter_map(|cell| cell["cell"].as_str()).collect();
    assert_eq!(names, ["2t-100ns-4x-quiet", "2t-100ns-4x-hogs", "phases", "sleeper"]);
    for cell in cells {
        let contestants = cell["contestants"].as_array().unwrap();
        assert_eq!(contestants.len(), 4, "three, and one of them again");
        for contestant in contestants {
            assert!(contestant["median"]["throughput"].as_f64().unwrap() > 0.0, "{contestant}");
            assert!(contestant["regret"].as_f64().unwrap() > 0.0, "{contestant}");
        }
        assert_eq!(contestants[0]["rounds"].as_array().unwrap().len(), 2);
        assert_eq!(contestants[3]["rounds"].as_array().unwrap().len(), 1);
    }
    let mean = |standing: &Value| standing["mean_regret"].as_f64().unwrap();
    let standings = data["standings"].as_array().unwrap();
    assert!(standings.windows(2).all(|pair| mean(&pair[0]) <= mean(&pair[1])), "{standings:?}");
    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    for part in ["class=\"fstep", "up to 1.03", "Longest wait", "Standings"] {
        assert!(page.contains(part), "{part} is missing from the page");
    }
}

#[test]
fn a_section_is_as_long_as_its_name_says() {
    let place = Place::new("section");
    let out = place.path("out");
    let who = ["--contestants", "std", "--rounds", "3", "--window-ms", "50"];
    let done = regret(&out, &[&["--cells", "1t-10us-tight-quiet"], &who[..]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let results = json(&Path::new(&out).join("results.json"));
    let rounds = &results["experiments"][0]["data"]["cells"][0]["contestants"][0]["rounds"];
    let costs =
        rounds.as_array().unwrap().iter().map(|round| round["processor_ns"].as_f64().unwrap());
    // Processor time; a section that is interrupted has less of it. What is looked for is another
    // unit.
    let least = costs.fold(f64::INFINITY, f64::min);
    assert!((1_000.0..50_000.0).contains(&least), "10 us took {least} ns");
}

#[test]
fn what_regret_cannot_mean_is_refused_before_anything_runs() {
    let place = Place::new("regret-refused");
    let out = place.path("out");
    let cases: [(&[&str], &str); 13] = [
        (&["--cells", "3t"], "`3t`"),
        (&["--cells", "8t-2t"], "8t-1us-4x-hogs"),
        (&["--contestants", "glibc"], "parking_lot"),
        (&["--rounds", "0"], "--rounds"),
        (&["--window-ms", "0"], "--window-ms"),
        (&["--window-ms", "3600000"], "--window-ms"),
        (&["--quick", "--full"], "--full"),
        (&["--random", "0"], "--random"),
        (&["--random", "2", "--cells", "8t"], "--cells"),
        (&["--random", "2", "--family", "latches"], "there are locks"),
        (&["--family", "locks"], "--random"),
        (&["--replay", "locks:1"], "FAMILY:SEED:INDEX"),
        (&["--replay", "latches:1:2"], "there are locks"),
    ];
    for (more, part) in cases {
        let refused = regret(&out, more);
        assert_eq!(refused.status.code(), Some(2), "{more:?}");
        let said = text(&refused.stderr);
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    let refused = stanchion(&["study", "fig3.5", "--cells", "8t", "--out", &out]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("--cells") && said.contains("add `regret`"), "{said}");
    assert!(!Path::new(&out).exists(), "nothing is made for a wrong command line");
}

#[test]
fn a_hog_ends_when_its_input_does() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let mut hog = Command::new(env!("CARGO_BIN_EXE_stanchion"))
        .args(["hog", "0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut said = String::new();
    BufReader::new(hog.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "computing on 0\n");
    assert!(hog.try_wait().unwrap().is_none(), "it computes as long as its input is open");
    drop(hog.stdin.take());
    assert!(hog.wait().unwrap().success());
}

/// A study that is killed in the middle of a cell with hogs leaves none behind.
#[cfg(target_os = "linux")]
#[test]
fn hogs_end_with_a_study_that_is_killed() {
    let place = Place::new("killed");
    let mut study = Command::new(env!("CARGO_BIN_EXE_stanchion"))
        .args(["study", "regret", "--cells", "1t-0ns-4x-hogs", "--contestants", "std"])
        .args(["--window-ms", "60000", "--out", &place.path("out")])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it can be started");
    let began = std::time::Instant::now();
    let within = |what: &str| {
        assert!(began.elapsed().as_secs() < 60, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let hogs = loop {
        let hogs = hogs_of(study.id());
        if !hogs.is_empty() {
            break hogs;
        }
        within("no hog was started");
    };
    study.kill().expect("it is our child");
    study.wait().unwrap();
    for hog in hogs {
        while is_hog(hog) {
            within("a hog outlived its study");
        }
    }
}

/// Processes that are hogs and children of `parent`.
#[cfg(target_os = "linux")]
fn hogs_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("Linux has /proc").flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&process| {
            let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            status.lines().any(|line| line == format!("PPid:\t{parent}")) && is_hog(process)
        })
        .collect()
}

/// Returns whether `process` is a hog that has not ended.
#[cfg(target_os = "linux")]
fn is_hog(process: u32) -> bool {
    let arguments = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    arguments.split(|&byte| byte == 0).nth(1) == Some(b"hog")
}

/// Whole rounds count when the user stops the measurement. All rounds take over half a minute.
#[cfg(target_os = "linux")]
#[test]
fn regret_interrupted_keeps_its_whole_rounds() {
    let place = Place::new("regret-interrupt");
    let out = place.path("out");
    let mut running = Command::new(env!("CARGO_BIN_EXE_stanchion"))
        .args(["study", "regret", "--cells", "1t-0ns-4x-hogs", "--contestants", "std,spin"])
        .args(["--rounds", "250", "--window-ms", "50", "--out", &out])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it can be started");
    // Each round starts hogs of its own, at most two. So a third hog says that one round is whole.
    let began = std::time::Instant::now();
    let mut hogs = std::collections::BTreeSet::new();
    while hogs.len() < 3 {
        assert!(began.elapsed().as_secs() < 60, "only these hogs were started: {hogs:?}");
        std::thread::sleep(std::time::Duration::from_millis(20));
        hogs.extend(hogs_of(running.id()));
    }
    // SAFETY: a plain system call; the process is our child and has not been waited for, so the
    // number is still its own.
    let sent = unsafe { libc::kill(running.id().cast_signed(), libc::SIGINT) };
    assert_eq!(sent, 0);
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let results = json(&Path::new(&out).join("results.json"));
    assert_eq!(results["complete"], false);
    let because = results["experiments"][0]["verdict"]["because"].to_string();
    assert!(because.contains("then interrupted"), "{because}");
    let rounds = results["experiments"][0]["data"]["rounds"].as_u64().unwrap();
    assert!((1..250).contains(&rounds), "{rounds}");
}

#[test]
fn timelines_are_in_the_report_and_as_traces_on_request_and_the_same_on_every_run() {
    let place = Place::new("trace");
    let run = |name: &str| {
        let out = place.path(name);
        let machine = ["--machine", "firefly", "--quick", "--trace", "--out", &out];
        let done = stanchion(&[&["study", "all89/fig4.1"], &machine[..]].concat());
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        let read = |file: &str| fs::read_to_string(Path::new(&out).join(file)).unwrap();
        assert!(read("report.html").contains("Timeline: "), "no timeline in the report");
        (read("simulated.json"), read("all89-fig4.1-firefly-TestAndSet-read.trace.json"))
    };
    let (results, trace) = run("a");
    let events: serde_json::Value = serde_json::from_str(&trace).unwrap();
    assert!(events["traceEvents"].as_array().is_some_and(|events| events.len() > 50));
    assert!(run("b") == (results, trace), "two runs of one seed differ");

    let refused = stanchion(&["study", "fig4.1", "--trace", "--out", &place.path("c")]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--trace is for simulated machines"));
}

//! `stanchion study --resume` as a user runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Place, text};
use serde_json::{Value, json};

fn study(arguments: &[&str], out: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    command.env_remove("CARGO_PKG_NAME").args(["study", "--output", out]).args(arguments);
    command.output().expect("it can be started")
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("it was written")).expect("it is JSON")
}

/// Makes the results of a whole study those of one that was killed before its second experiment.
fn kill(path: &Path) {
    let mut results = read(path);
    results["complete"] = json!(false);
    results["experiments"][0]["title"] = json!("kept");
    let second = &mut results["experiments"][1];
    second["seconds"] = json!(null);
    second["left"] = json!(true);
    second["verdict"] = json!({"is": "not_run", "because": "before its turn"});
    fs::write(path, results.to_string()).unwrap();
}

/// A study of two experiments that was killed between them.
fn killed(place: &Place, machine: &str) -> (String, PathBuf) {
    let out = place.path("out");
    let done = study(&["all89/table3.1", "fig3.5", "--quick", "--machine", machine], &out);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let file = if machine == "real" { "results.json" } else { "simulated.json" };
    let path = Path::new(&out).join(file);
    kill(&path);
    (out, path)
}

#[test]
fn a_killed_study_goes_on_and_is_then_whole() {
    for machine in ["real", "simulated"] {
        let place = Place::new("resume");
        let (out, path) = killed(&place, machine);
        // The report of the killed study has the command.
        let copy = path.to_str().unwrap();
        let mut report = Command::new(env!("CARGO_BIN_EXE_stanchion"));
        report.env_remove("CARGO_PKG_NAME").args(["report", copy, "--output", &out]);
        assert_eq!(report.output().unwrap().status.code(), Some(0));
        let page = || fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
        let missing =
            "1 experiment is missing: all89/fig3.5. This command goes on: <code>stanchion";
        assert!(page().contains(missing), "{}", page());
        let arguments = ["all89/table3.1", "fig3.5", "--quick", "--machine", machine, "--resume"];
        let done = study(&arguments, &out);
        let said = text(&done.stdout);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        let runs = |id: &str| said.lines().any(|line| line.starts_with(id));
        assert!(runs("all89/fig3.5") && !runs("all89/table3.1"), "{said}");
        let results = read(&path);
        assert_eq!((&results["complete"], &results["seed"]), (&json!(true), &json!(1989)));
        let [first, second] = &results["experiments"].as_array().unwrap()[..] else {
            panic!("two were chosen: {results}");
        };
        assert_eq!((&first["title"], &second["verdict"]["is"]), (&json!("kept"), &json!("holds")));
        assert!(second.get("left").is_none(), "{second}");
        assert!(!page().contains("had not finished"), "{}", page());
        assert_eq!(page().contains("went on"), machine == "real");
        // Nothing is left.
        let written = fs::read(&path).unwrap();
        let done = study(&arguments, &out);
        assert_eq!(done.status.code(), Some(0));
        assert!(text(&done.stdout).starts_with("nothing is left to resume"), "{done:?}");
        assert_eq!(fs::read(&path).unwrap(), written);
    }
}

#[test]
fn what_is_not_the_same_study_is_refused_and_left_as_it_was() {
    let place = Place::new("not-resumed");
    let (out, path) = killed(&place, "real");
    let before = fs::read(&path).unwrap();
    let same = ["all89/table3.1", "fig3.5", "--quick", "--resume"];
    let goes_on = "`stanchion study all89/table3.1 fig3.5 --quick --seed 1989 --output ";
    for (arguments, said) in [
        (&[&same[..], &["--seed", "7"]].concat()[..], "its --seed is 1989; now it is 7"),
        (&["all89/table3.1", "fig3.5", "--resume"], "its --quick is given; now it is not given"),
        (
            &["fig3.5", "--quick", "--resume"],
            "its filter is all89/table3.1 fig3.5; now it is fig3.5",
        ),
    ] {
        let refused = study(arguments, &out);
        let error = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said) && error.contains(goes_on), "{arguments:?}: {error}");
        assert!(refused.stdout.is_empty());
    }
    assert_eq!(fs::read(&path).unwrap(), before);
    let mut older = read(&path);
    older.as_object_mut().unwrap().remove("asked");
    let elsewhere = String::from_utf8(before.clone()).unwrap().replace("\"linux ", "\"linux 0.");
    let computer = "its computer's system is linux 0.";
    let cut = before[..before.len() / 2].to_vec();
    for (content, said) in [
        (older.to_string().into_bytes(), "an older version wrote it"),
        (cut, "no whole file of results"),
        (elsewhere.into_bytes(), if cfg!(target_os = "linux") { computer } else { "" }),
    ] {
        if said.is_empty() {
            continue;
        }
        fs::write(&path, content).unwrap();
        let refused = study(&same, &out);
        let error = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{error}");
        assert!(error.contains(said) && error.contains("Leave out --resume"), "{error}");
    }
    let nowhere = place.path("nowhere");
    let refused = study(&same, &nowhere);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("no such file"), "{refused:?}");
    assert!(!Path::new(&nowhere).exists(), "nothing is made");
    assert_eq!(study(&["--list", "--resume"], &out).status.code(), Some(2));
}

/// Ctrl-C: the terminal and the report say what is missing, and how to go on.
#[cfg(unix)]
#[test]
fn an_interrupted_study_names_the_command_that_goes_on() {
    let place = Place::new("interrupted");
    let out = place.path("out");
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanchion"));
    command.env_remove("CARGO_PKG_NAME").args(["study", "fig3.5", "fig4.1", "regsim", "--quick"]);
    command.args(["--seed", "7", "--output", &out]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let running = command.spawn().expect("it can be started");
    let path = Path::new(&out).join("results.json");
    let began = std::time::Instant::now();
    while !path.exists() {
        assert!(began.elapsed().as_secs() < 120, "the first experiment did not end");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // SAFETY: a plain system call; the process is our child and has not been waited for, so the
    // number is still its own.
    let sent = unsafe { libc::kill(running.id().cast_signed(), libc::SIGINT) };
    assert_eq!(sent, 0);
    let done = running.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130));
    let said = text(&done.stdout);
    let goes_on = format!("study fig3.5 fig4.1 regsim --quick --seed 7 --output {out} --resume");
    assert!(said.contains("2 experiments are missing: all89/fig4.1 regsim"), "{said}");
    assert!(said.contains(&format!("This command goes on: stanchion {goes_on}")), "{said}");
    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.contains("2 experiments are missing: all89/fig4.1, regsim."), "{page}");
    assert!(page.contains(&format!("<code>stanchion {goes_on}</code>")), "{page}");
    let results = read(&path);
    let left = |entry: &Value| entry.get("left") == Some(&json!(true));
    let left: Vec<bool> = results["experiments"].as_array().unwrap().iter().map(left).collect();
    assert_eq!(left, [false, true, true]);
}

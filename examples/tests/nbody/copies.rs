//! The copies of `nbody`: their arguments, and what they tell.

use examples::nbody::copies::{Line, arguments, report, run};
use std::ffi::OsString;
use std::process::Command;

fn line(name: &str, seconds: f64, checksum: u64) -> Line {
    Line { name: name.to_owned(), seconds, checksum }
}

#[test]
fn a_copy_has_the_other_arguments() {
    let of = |text: &str| {
        let all: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        arguments(&all).join(OsString::from(" ").as_os_str())
    };
    assert_eq!(of("nbody --copies 2 --steps 3"), "--steps 3 --copy");
    assert_eq!(of("nbody --steps 3 --copies=2"), "--steps 3 --copy");
}

#[test]
fn a_line_is_read_as_it_was_written() {
    let mut text = Vec::new();
    line("kernel", 1.25, 0xabc).write(&mut text).expect("a vector");
    let text = String::from_utf8(text).expect("text");
    assert_eq!(Line::parse(text.trim_end()), Some(line("kernel", 1.25, 0xabc)));
    for bad in ["", "kernel", "kernel x 0", "kernel 1 z", "kernel 1 2 3"] {
        assert_eq!(Line::parse(bad), None, "{bad}");
    }
}

#[cfg(unix)]
#[test]
fn what_copies_say_is_collected() {
    let says = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    };
    let both = run(vec![says("echo pool 1.0 a"), says("echo pool 2.0 a")]);
    assert_eq!(both, Ok(vec![vec![line("pool", 1.0, 10)], vec![line("pool", 2.0, 10)]]));
    for (script, why) in [
        ("exit 3", "a copy failed: exit status: 3"),
        ("echo hello", "a copy said: hello"),
        (":", "a copy said: "),
    ] {
        assert_eq!(run(vec![says("echo pool 1.0 a"), says(script)]), Err(why.to_owned()));
    }
    let error = run(vec![Command::new("/nowhere/nbody")]).expect_err("no such program");
    assert!(error.starts_with("a copy could not be started: "), "{error}");
}

#[test]
fn speed_up_is_of_the_mean() {
    let mut text = Vec::new();
    let copies = [vec![line("pool", 1.0, 7)], vec![line("pool", 3.0, 7)]];
    assert!(report(&mut text, &copies, (4.0, 7)).expect("a vector"));
    let text = String::from_utf8(text).expect("text");
    assert!(text.contains("2.000      2.00   1.000 3.000"), "{text}");
    assert!(!report(&mut Vec::new(), &copies, (4.0, 8)).expect("a vector"));
}

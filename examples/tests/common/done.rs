//! A run of a program, looked at from outside.

use std::ffi::OsString;

/// The result of a program.
pub(crate) struct Done {
    /// The exit code.
    pub(crate) code: u8,
    /// The text that it wrote to its output.
    pub(crate) out: String,
    /// The text of its messages.
    pub(crate) err: String,
}

impl Done {
    /// Runs `app` as `program` with these arguments, and with streams for its output.
    pub(crate) fn of(
        program: &str,
        arguments: &[&str],
        app: impl FnOnce(Vec<OsString>, &mut Vec<u8>, &mut Vec<u8>) -> u8,
    ) -> Self {
        let arguments = [program].iter().chain(arguments).map(OsString::from).collect();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = app(arguments, &mut out, &mut err);
        let text = |bytes| String::from_utf8(bytes).expect("messages are text");
        Self { code, out: text(out), err: text(err) }
    }
}

/// Files of `--policy` and `--waits` that cannot be opened are refused, by a line that begins with
/// `names` and the file. `run` runs a short program with arguments more.
pub(crate) fn assert_bad_files_are_refused(names: &str, run: impl Fn(&[&str]) -> Done) {
    let cases: [&[&str]; 2] = [
        &["--policy", "optimal-online=/nowhere/t.json"],
        &["--policy", "default", "--waits", "/nowhere/w.json"],
    ];
    for more in cases {
        let done = run(more);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{more:?}");
        assert!(done.err.starts_with(&format!("{names}/nowhere/")), "{}", done.err);
        assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    }
}

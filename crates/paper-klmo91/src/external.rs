//! Programs that are recorded as a user would record them: by `stanchion record`. Most are programs
//! that this project did not write.
//!
//! The command runs itself in another process. A program may hang, or take a signal badly: after a
//! time limit, or at Ctrl-C, its whole process group is ended. It runs in a directory of its own,
//! which is removed afterwards.
//!
//! The C library does the waiting, as it always would, and the shim measures it from outside. So a
//! wait is spun through only if it ended before the thread went to sleep.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::recording::Recorded;
use crate::waits::pool::{self, Pool};
use stanchion_study::context::{Context, Stop};

/// A program, and the functions that put it to work.
pub(crate) struct External {
    /// The label in tables.
    pub(crate) name: &'static str,
    /// The paper's row that stands beside it.
    pub(crate) beside: &'static str,
    /// The programs that must be there.
    pub(crate) needs: &'static [&'static str],
    /// Debian's packages that have them.
    pub(crate) packages: &'static str,
    /// Puts the program's input into the directory.
    pub(crate) prepare: fn(&Path, &Context) -> std::io::Result<()>,
    /// The program and its arguments; it runs in the directory.
    pub(crate) command: fn(&Context) -> std::io::Result<Vec<OsString>>,
    /// Keeps the program busy while it runs. A program that ends by itself needs nothing.
    pub(crate) drive: Option<Drive>,
    /// Returns a sentence that describes the run.
    pub(crate) what: fn(&Context) -> String,
}

/// A function that keeps the program in that directory busy, for as long as the callback says that
/// the program runs.
pub(crate) type Drive = fn(&Path, &Context, &mut dyn FnMut() -> bool) -> std::io::Result<()>;

/// The time limit of a program, longer than any of them takes.
const LIMIT: Duration = Duration::from_secs(120);
/// The time limit of a program that was asked to end.
const GRACE: Duration = Duration::from_secs(2);
/// The time between two checks for the end of the program.
const LOOK: Duration = Duration::from_millis(20);

/// The cause of a missing recording: a reason to be shown, or the end of the experiment.
pub(crate) enum Missing {
    Because(String),
    Stop(Stop),
}

impl From<std::io::Error> for Missing {
    fn from(error: std::io::Error) -> Self {
        Self::Because(error.to_string())
    }
}

/// Records the program.
pub(crate) fn record(external: &External, context: &Context) -> Result<Recorded, Missing> {
    let absent: Vec<&str> =
        external.needs.iter().copied().filter(|program| !is_in_path(program)).collect();
    if !absent.is_empty() {
        let (absent, packages) = (absent.join(", "), external.packages);
        return Err(Missing::Because(format!("{absent} not found: install Debian's {packages}")));
    }
    let place = Place::new(external.name)?;
    (external.prepare)(&place.0, context)?;
    let mut running = Running::start(&place.0, &(external.command)(context)?)?;
    if let Some(drive) = external.drive {
        // If the program ended before its time, its own message says more than the error of
        // `drive`.
        let driven = drive(&place.0, context, &mut || matches!(running.ended(), Ok(None)));
        if running.ended()?.is_none() {
            driven?;
        }
        running.ask_to_end();
    }
    let ended = running.wait(context)?;
    let file = place.0.join(WAITS);
    if !file.exists() {
        return Err(Missing::Because(words(&place.0, ended)));
    }
    let recordings = pool::load(&[file]).map_err(|error| Missing::Because(error.to_string()))?;
    let elapsed = recordings.iter().map(|recording| recording.elapsed_ns).sum();
    Ok(Recorded {
        name: external.name.to_owned(),
        beside: external.beside,
        what: (external.what)(context),
        pool: Pool::of(recordings),
        elapsed: Duration::from_nanos(elapsed),
        processors: context.processors.len(),
        how: Some(HOW),
        scale: 1.0,
    })
}

const HOW: &str = "Recorded by `stanchion record`, the C library doing the waiting: a wait lasts until the thread has the lock, or, if it slept, until \
                   the release that woke it, and C is what `stanchion record` found a wake-up to take.";

const WAITS: &str = "waits.json";
const WORDS: &str = "words.txt";

/// Returns the message of `stanchion record`, which is on the last line.
fn words(place: &Path, ended: ExitStatus) -> String {
    let said = fs::read_to_string(place.join(WORDS)).unwrap_or_default();
    let ours = said.lines().rev().find_map(|line| line.strip_prefix("stanchion: "));
    match ours.or_else(|| said.lines().last()) {
        Some(line) => line.to_owned(),
        None => format!("`stanchion record` ended with {ended} and said nothing"),
    }
}

/// Returns `text` with the file name of each absolute path in place of the path. The page of a
/// study may be shown to others, and a long path would make it wide.
pub(crate) fn without_folders(text: &str) -> String {
    let named = |c: char| c.is_alphanumeric() || c == '.';
    let word = |word: &str| {
        let start = word.find(|c: char| named(c) || c == '/');
        let mut slashes = word.match_indices('/').map(|(at, _)| at);
        let last = slashes.rfind(|at| word[at + 1..].starts_with(named));
        match (start, last) {
            (Some(start), Some(last)) if word[start..].starts_with('/') => {
                format!("{}{}", &word[..start], &word[last + 1..])
            }
            _ => word.to_owned(),
        }
    };
    let words: Vec<String> = text.split(' ').map(word).collect();
    words.join(" ")
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|place| place.join(program).is_file())
}

/// A directory, removed when dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> std::io::Result<Self> {
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let path = std::env::temp_dir().join(format!("stanchion-{}-{name}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running `stanchion record`. If this is dropped before the end of the process, its process
/// group is ended.
struct Running {
    /// The process that leads the group.
    child: Child,
    /// The exit status, once the process has ended.
    ended: Option<ExitStatus>,
}

impl Running {
    fn start(place: &Path, command: &[OsString]) -> std::io::Result<Self> {
        let words = File::create(place.join(WORDS))?;
        let child = Command::new(std::env::current_exe()?)
            .args(["record", "--output", WAITS, "--"])
            .args(command)
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(words)
            // Ctrl-C is for the study, which ends this process itself.
            .process_group(0)
            .spawn()?;
        Ok(Self { child, ended: None })
    }

    fn ended(&mut self) -> std::io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended)
    }

    /// A server ends in good order when it is asked to.
    fn ask_to_end(&self) {
        self.signal(self.child.id().cast_signed(), libc::SIGTERM);
    }

    fn wait(&mut self, context: &Context) -> Result<ExitStatus, Missing> {
        let began = Instant::now();
        loop {
            if let Some(ended) = self.ended()? {
                return Ok(ended);
            }
            context.go_on().map_err(Missing::Stop)?;
            if began.elapsed() > LIMIT {
                let seconds = LIMIT.as_secs();
                return Err(Missing::Because(format!("it did not end within {seconds} s")));
            }
            thread::sleep(LOOK);
        }
    }

    fn signal(&self, to: i32, signal: i32) {
        if self.ended.is_none() {
            // SAFETY: a plain system call; the child has not been waited for, so its number and its
            // group's are its own.
            unsafe { libc::kill(to, signal) };
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = -self.child.id().cast_signed();
        // All processes that it has started end with it. The first signal lets them end in good
        // order, so that none leaves a file.
        for signal in [libc::SIGTERM, libc::SIGKILL] {
            if !matches!(self.ended(), Ok(None)) {
                return;
            }
            self.signal(group, signal);
            let asked = Instant::now();
            while asked.elapsed() < GRACE && matches!(self.ended(), Ok(None)) {
                thread::sleep(LOOK);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_study::interrupt::Interrupt;

    #[test]
    fn what_is_not_installed_is_named_with_its_package() {
        let external = External {
            name: "a program",
            beside: "Taos (M2+)",
            needs: &["sh", "no-such-program-anywhere"],
            packages: "no-such-package",
            prepare: |_, _| panic!("nothing is prepared for what cannot be run"),
            command: |_| Ok(Vec::new()),
            drive: None,
            what: |_| String::new(),
        };
        let context = Context::new(true, 1, Interrupt::default());
        let Err(Missing::Because(why)) = record(&external, &context) else {
            panic!("it cannot have been recorded");
        };
        assert!(why.starts_with("no-such-program-anywhere not found"), "{why}");
        assert!(why.contains("no-such-package"), "{why}");
    }

    #[test]
    fn our_own_words_come_first_and_the_directory_goes() {
        let place = Place::new("words of a test").unwrap();
        let path = place.0.clone();
        let ended = ExitStatus::default();
        assert!(words(&path, ended).contains("said nothing"));
        fs::write(path.join(WORDS), "cc: oh\nstanchion: no shim\nmake: ended\n").unwrap();
        assert_eq!(words(&path, ended), "no shim");
        fs::write(path.join(WORDS), "cc: oh\nmake: ended\n").unwrap();
        assert_eq!(words(&path, ended), "make: ended");
        drop(place);
        assert!(!path.exists());
    }

    #[test]
    fn paths_are_told_by_their_last_names() {
        for (text, told) in [
            ("cannot read /tmp/a/waits.json: gone", "cannot read waits.json: gone"),
            ("`/no/such/cargo` cannot be run", "`cargo` cannot be run"),
            ("(/opt/x/), or in ../lib", "(x/), or in ../lib"),
            ("1/2 of them; memcached not found", "1/2 of them; memcached not found"),
            ("/", "/"),
            ("", ""),
        ] {
            assert_eq!(without_folders(text), told);
        }
    }
}

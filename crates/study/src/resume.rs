//! Goes on with an interrupted study: keeps what ran, for the rest to run.
//!
//! A study goes on as the same study only. Its results say what was asked and on which computer,
//! so another version, option, seed or computer is refused, with the field that differs. Simulated
//! machines are the same on every computer: there, only their descriptions must be the same.

use std::path::Path;

use crate::asked::Asked;
use crate::error::Error;
use crate::report;
use crate::results::{Entry, Results};

/// The remedy if the study cannot go on at all.
const ANEW: &str = "Leave out --resume to begin a new study";

/// Why a study cannot go on, and the way out.
struct Refusal {
    /// The reason.
    why: String,
    /// The way out.
    remedy: String,
}

impl Refusal {
    fn new(why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { why: why.into(), remedy: remedy.into() }
    }

    fn differs(what: &str, was: &str, now: &str, remedy: impl Into<String>) -> Self {
        Self::new(format!("its {what} is {was}; now it is {now}"), remedy)
    }
}

/// Returns the results of the study in the folder `out`, which goes on as `waiting`: the results of
/// the same study before anything has run.
pub(crate) fn kept(out: &Path, waiting: Results) -> Result<Results, Error> {
    let path = report::results_in(out, waiting.is_real());
    let refused = |refusal: Refusal| Error::NotResumed {
        path: path.clone(),
        // It may quote the file, and is printed on terminals.
        why: refusal.why.replace(char::is_control, " "),
        remedy: refusal.remedy.replace(char::is_control, " "),
    };
    if !path.exists() {
        let remedy = format!("Name the folder of the study with --output DIR. {ANEW}");
        return Err(refused(Refusal::new("there is no such file", remedy)));
    }
    let kept = Results::read(&path).map_err(|error| match error {
        Error::ReadResults { why, .. } => refused(Refusal::new(why, ANEW)),
        other => other,
    })?;
    check(&kept, &waiting, out).map_err(refused)?;
    Ok(join(kept, waiting))
}

/// Returns the kept results as those of a study that goes on.
fn join(mut kept: Results, waiting: Results) -> Results {
    if let (Some(kept), Some(now)) = (&mut kept.here, waiting.here) {
        kept.ended = None;
        kept.resumed.push(now.written);
        // They differ in the load. The report shows the one that warns.
        if kept.machine.warning().is_none() {
            kept.machine = now.machine;
        }
    }
    kept
}

fn check(kept: &Results, now: &Results, out: &Path) -> Result<(), Refusal> {
    let (Some(was), Some(asked)) = (&kept.asked, &now.asked) else {
        let why = "it does not say how it was asked for, so an older version wrote it";
        return Err(Refusal::new(why, ANEW));
    };
    if was.version != asked.version {
        let remedy = format!("Go on with version {}. {ANEW}", was.version);
        return Err(Refusal::differs("version", &was.version, &asked.version, remedy));
    }
    if let Some((what, was_it, is)) = was.difference(asked) {
        return Err(Refusal::differs(&what, &was_it, &is, same(was, out)));
    }
    if kept.is_real() != now.is_real() || kept.machines != now.machines {
        return Err(Refusal::new("it is of other machines, or of other descriptions", ANEW));
    }
    if let (Some(there), Some(here)) = (&kept.here, &now.here)
        && let Some((what, was, is)) = there.machine.difference(&here.machine)
    {
        let remedy = format!("Go on where it began. {ANEW}");
        return Err(Refusal::differs(&format!("computer's {what}"), &was, &is, remedy));
    }
    let run = |entry: &Entry| (entry.id.clone(), entry.on.clone());
    if !kept.entries.iter().map(run).eq(now.entries.iter().map(run)) {
        let (was, is) = (kept.entries.len(), now.entries.len());
        let why = format!("it has other experiments than this build: {was} runs, and now {is}");
        return Err(Refusal::new(why, ANEW));
    }
    Ok(())
}

/// Returns the remedy if something else was asked.
fn same(was: &Asked, out: &Path) -> String {
    format!("`{}` goes on with it. {ANEW}", was.command(out))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::context::{Context, Stop};
    use crate::experiment::{Bodies, Experiment, Kind, Paper};
    use crate::host::Host;
    use crate::outcome::{Outcome, Verdict};
    use crate::results::{Here, Took};
    use crate::target::{Call, Task};

    fn nothing(_: &Context) -> Result<Outcome, Stop> {
        Ok(Outcome::new(Verdict::Holds("nothing".to_owned())))
    }

    fn experiment(id: &'static str) -> Experiment {
        let bodies = Bodies::formula(nothing);
        Experiment { id, paper: Paper::All89, title: "title", claim: "Claim.", bodies }
    }

    /// The results of a study of three experiments before anything has run.
    fn waiting(asked: Asked, seed: u64) -> Results {
        let experiments = ["one", "two", "three"].map(experiment);
        let task =
            |experiment| Task { experiment, kind: Kind::Real, call: Ok(Call::Here(nothing)) };
        let tasks: Vec<Task<'_>> = experiments.iter().map(task).collect();
        let here = Here { written: 1, ended: None, resumed: Vec::new(), machine: Host::here() };
        let asked = asked.with_values("--seed", [seed]);
        Results { asked: Some(asked), ..Results::waiting(&tasks, Some(here), true, seed) }
    }

    fn asked(filters: &[&str], quick: bool) -> Asked {
        let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
        Asked::new(&filters).with_flag("--quick", quick)
    }

    /// A folder with the results of a study in which the first of three experiments ran.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = format!("stanchion-resume-{name}-{}", std::process::id());
            let folder = Self(std::env::temp_dir().join(folder));
            fs::create_dir_all(&folder.0).unwrap();
            let mut results = waiting(asked(&["o"], true), 7);
            results.entries[0].outcome = nothing(&context()).unwrap();
            results.entries[0].seconds = Took::Seconds(2.0);
            results.entries[0].left = false;
            folder.write(&results);
            folder
        }

        fn path(&self) -> PathBuf {
            self.0.join("results.json")
        }

        fn write(&self, results: &Results) {
            fs::write(self.path(), serde_json::to_string(results).unwrap()).unwrap();
        }

        fn read(&self) -> Results {
            Results::read(&self.path()).unwrap()
        }

        /// Returns the message with which `now` is refused.
        fn refuses(&self, now: Results) -> String {
            let error = kept(&self.0, now).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{error}");
            let said = error.to_string();
            assert!(said.contains("results.json") && said.contains("--resume"), "{said}");
            said
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn context() -> Context {
        Context::new(true, 7, crate::interrupt::Interrupt::default())
    }

    #[test]
    fn the_same_study_goes_on_and_keeps_what_ran() {
        let folder = Folder::new("same");
        let on = kept(&folder.0, waiting(asked(&["o"], true), 7)).unwrap();
        let left: Vec<bool> = on.entries.iter().map(Entry::is_left).collect();
        assert_eq!(left, [false, true, true]);
        assert_eq!(on.missing(), ["two", "three"]);
        assert_eq!(on.entries[0].outcome.verdict, Verdict::Holds("nothing".to_owned()));
        let here = on.here.as_ref().unwrap();
        assert_eq!((here.written, here.ended, &here.resumed[..]), (1, None, &[1][..]));
        assert!(!on.is_over());
    }

    #[test]
    fn another_study_is_refused_with_the_field() {
        let folder = Folder::new("other");
        let goes_on = "`stanchion study o --quick --seed 7 --output";
        for (now, said) in [
            (waiting(asked(&["o"], true), 8), "its --seed is 7; now it is 8"),
            (waiting(asked(&["o"], false), 7), "its --quick is given; now it is not given"),
            (waiting(asked(&[], true), 7), "its filter is o; now it is none"),
        ] {
            let refused = folder.refuses(now);
            assert!(refused.contains(said) && refused.contains(goes_on), "{refused}");
        }
        let rounds = asked(&["o"], true).with_values("--rounds", [3]);
        let refused = folder.refuses(waiting(rounds, 7));
        assert!(refused.contains("its --rounds is not given; now it is 3"), "{refused}");
    }

    #[test]
    fn another_version_computer_or_build_is_refused() {
        let folder = Folder::new("computer");
        let now = || waiting(asked(&["o"], true), 7);
        let refuses = |change: &dyn Fn(&mut Results), said: &str| {
            let mut results = now();
            change(&mut results);
            folder.write(&results);
            let refused = folder.refuses(now());
            assert!(refused.contains(said), "{refused}");
        };
        let machine = |change: &'static dyn Fn(&mut Host)| {
            move |results: &mut Results| change(&mut results.here.as_mut().unwrap().machine)
        };
        refuses(
            &|results| results.asked.as_mut().unwrap().version = "0.0.1".to_owned(),
            "its version is 0.0.1; now it is",
        );
        refuses(&machine(&|host| host.processors.push(4_096)), "its computer's processors usable");
        refuses(
            &machine(&|host| host.system = "plan9\n".to_owned()),
            "its computer's system is plan9 ;",
        );
        refuses(&machine(&|host| host.optimized = !host.optimized), "its computer's stanchion is");
        refuses(&|results| drop(results.entries.pop()), "2 runs, and now 3");
        refuses(&|results| results.asked = None, "an older version wrote it");
        // The load is not the computer's.
        let mut results = now();
        results.here.as_mut().unwrap().machine.load = "99.0 98.0 97.0 1/2 3".to_owned();
        folder.write(&results);
        let on = kept(&folder.0, now()).unwrap();
        assert!(on.here.unwrap().machine.warning().is_some());
    }

    #[test]
    fn a_cut_file_and_none_are_refused() {
        let folder = Folder::new("cut");
        let now = || waiting(asked(&["o"], true), 7);
        let text = fs::read_to_string(folder.path()).unwrap();
        fs::write(folder.path(), &text[..text.len() / 2]).unwrap();
        let refused = folder.refuses(now());
        assert!(
            refused.contains("no whole file of results") && refused.contains(ANEW),
            "{refused}"
        );
        fs::remove_file(folder.path()).unwrap();
        let refused = folder.refuses(now());
        assert!(refused.contains("no such file") && refused.contains("--output DIR"), "{refused}");
    }

    #[test]
    fn a_whole_study_is_over_and_one_with_a_failure_is_not() {
        let folder = Folder::new("whole");
        let now = || waiting(asked(&["o"], true), 7);
        let mut results = folder.read();
        for entry in &mut results.entries {
            (entry.seconds, entry.left) = (Took::Seconds(1.0), false);
        }
        folder.write(&results);
        let killed = kept(&folder.0, now()).unwrap();
        assert!(!killed.is_over() && killed.missing().is_empty(), "its report says unfinished");
        results.complete = true;
        folder.write(&results);
        assert!(kept(&folder.0, now()).unwrap().is_over());
        results.entries[1].failed = true;
        folder.write(&results);
        let failed = kept(&folder.0, now()).unwrap();
        assert!(failed.entries[1].is_left() && !failed.is_over());
    }
}

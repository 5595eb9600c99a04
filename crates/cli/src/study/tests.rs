//! The catalogue under the study library: which experiments a filter means, on which machines they
//! run, and that simulated runs repeat.

use stanchion_simulator::{Machine, machines};
use stanchion_study::context::{Context, Stop};
use stanchion_study::error::Error;
use stanchion_study::experiment::{Bodies, Body, Counterfactual, Experiment, Paper};
use stanchion_study::interrupt::Interrupt;
use stanchion_study::results::{Results, Took};
use stanchion_study::select::{select, with_counterfactuals};
use stanchion_study::session::run_one;
use stanchion_study::target::{Call, Target, Task, plan};

use super::catalogue::{catalogue, points};

fn ids(filters: &[&str]) -> Vec<&'static str> {
    let filters: Vec<String> = filters.iter().map(|&filter| filter.to_owned()).collect();
    let all = catalogue().leak();
    select(all, &filters).unwrap().iter().map(|experiment| experiment.id).collect()
}

#[test]
fn filters() {
    assert_eq!(ids(&["all89/fig4.1"]), ["all89/fig4.1"]);
    assert_eq!(ids(&["all89/fig4"]), ["all89/fig4.1", "all89/fig4.2", "all89/fig4.3"]);
    assert_eq!(ids(&["FIG3.5", "regsim"]), ["all89/fig3.5", "regsim"]);
    assert_eq!(ids(&["fig4.?"]), ["all89/fig4.1", "all89/fig4.2", "all89/fig4.3"]);
    assert_eq!(ids(&["*/table3*"]), ["all89/table3.1", "klmo91/table3"]);
    assert_eq!(ids(&["fr92/fig4"]), ["fr92/fig4"]);
    assert_eq!(ids(&[]).len(), 45);
}

#[test]
fn unknown_names_the_nearest() {
    let all = catalogue();
    for (filter, expected) in
        [("all89/fig41", "all89/fig4.1"), ("regsin", "regsim"), ("tabel3.1", "all89/table3.1")]
    {
        let Err(error) = select(&all, &[filter.to_owned()]) else {
            panic!("{filter} matched");
        };
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn what_is_far_from_all_gets_no_suggestion() {
    let all = catalogue();
    for filter in ["nonsense", "*.html", "x", "queue"] {
        let Err(error) = select(&all, &[filter.to_owned()]) else {
            panic!("{filter} matched");
        };
        let said = error.to_string();
        assert!(!said.contains("nearest") && said.contains("--list"), "{said}");
    }
    let Err(error) = select(&all, &["regsim".to_owned(), String::new()]) else {
        panic!("nothing matched");
    };
    assert!(matches!(error, Error::EmptyFilter), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn every_name_is_a_target_and_every_experiment_names_machines() {
    for name in machines::NAMES {
        assert!(matches!(Target::of(name), Ok(Target::Named(_))), "{name}");
    }
    for experiment in catalogue() {
        if let Bodies::Machines { simulated: Body::Run(simulated), .. } = experiment.bodies {
            assert!(!simulated.machines.is_empty(), "{}", experiment.id);
            for name in simulated.machines {
                assert!(machines::NAMES.contains(name), "{}: {name}", experiment.id);
            }
        }
    }
}

#[test]
fn an_unknown_machine_is_refused_with_the_nearest() {
    for (name, nearest) in
        [("symetry-a", "symmetry-a"), ("firefy", "firefly"), ("reel", "real"), ("sim", "simulated")]
    {
        let error = Target::of(name).unwrap_err();
        assert!(error.to_string().contains(&format!("nearest: {nearest}")), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
    let said = Target::of("cray").unwrap_err().to_string();
    assert!(!said.contains("nearest") && said.contains("symmetry-a"), "{said}");
}

/// Returns a catalogue in which `with` has a counterfactual, and no other experiment has one.
fn with_one_counterfactual(with: &str) -> Vec<Experiment> {
    const PIECES: &[Counterfactual] = &[Counterfactual {
        name: "a daemon",
        piece: "The paper's system had daemons.",
        size: "daemons",
        sizes: &[0.0],
        figure: "figure",
        run: |_, _, _| Err(Stop::Interrupted),
    }];
    let mut all = catalogue();
    for experiment in &mut all {
        if let Bodies::Machines { simulated: Body::Run(simulated), .. } = &mut experiment.bodies {
            simulated.counterfactuals = if experiment.id == with { PIECES } else { &[] };
        }
    }
    all
}

#[test]
fn counterfactuals_are_of_those_chosen_that_have_some() {
    let all = with_one_counterfactual("klmo91/table4");
    let found = |filter: &[&str]| {
        let filters: Vec<String> = filter.iter().map(|&filter| filter.to_owned()).collect();
        let found = with_counterfactuals(&all, &select(&all, &filters).unwrap());
        found.map(|found| found.iter().map(|experiment| experiment.id).collect::<Vec<_>>())
    };
    assert_eq!(found(&[]).unwrap(), ["klmo91/table4"]);
    assert_eq!(found(&["klmo91"]).unwrap(), ["klmo91/table4"]);
    let error = found(&["table3", "regret", "fig3.5"]).unwrap_err();
    assert!(error.to_string().contains("choose among klmo91/table4"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn each_counterfactual_has_a_source_and_sizes_that_differ() {
    for experiment in catalogue() {
        let Bodies::Machines { simulated: Body::Run(simulated), .. } = experiment.bodies else {
            continue;
        };
        for piece in simulated.counterfactuals {
            let id = experiment.id;
            assert!(piece.piece.ends_with('.'), "{id}: {}", piece.piece);
            assert!(piece.sizes.len() > 1, "{id}: the model's own size, and another");
            assert!(piece.sizes.is_sorted_by(|one, next| one != next), "{id}: {:?}", piece.sizes);
        }
    }
}

fn refused(filter: &str, target: &Target) -> String {
    let all = catalogue();
    let chosen = select(&all, &[filter.to_owned()]).unwrap();
    match plan(&chosen, target) {
        Err(error) => error.to_string(),
        Ok(tasks) => panic!("{} tasks", tasks.len()),
    }
}

#[test]
fn a_choice_of_nothing_that_runs_is_refused() {
    let said = refused("regret", &Target::Papers);
    assert!(said.contains("regret") && said.contains("a simulated machine"), "{said}");
    let said = refused("fig3.5", &Target::of("firefly").unwrap());
    assert!(said.contains("formula"), "{said}");
}

#[test]
fn an_experiment_runs_on_each_machine_that_it_names_or_on_the_one_asked_for() {
    let all = catalogue();
    let filters = ["fig3.5", "all89/fig4.3", "regret"].map(str::to_owned);
    let chosen = select(&all, &filters).unwrap();
    let places = |target: &Target| -> Vec<String> {
        let place = |task: &Task<'_>| match &task.call {
            Ok(Call::Here(_)) => task.kind.name().to_owned(),
            Ok(Call::On(_, machine)) => machine.name.clone(),
            Err(_) => "none".to_owned(),
        };
        plan(&chosen, target).unwrap().iter().map(place).collect()
    };
    assert_eq!(places(&Target::Real), ["formula", "real", "real"]);
    let papers = ["formula", "symmetry-a", "symmetry-b", "firefly", "none"];
    assert_eq!(places(&Target::Papers), papers);
    assert_eq!(places(&Target::of("modern-2s").unwrap()), ["none", "modern-2s", "none"]);
}

#[test]
fn the_experiments_on_locks_run_on_a_machine_of_one_processor() {
    let context = Context::new(true, 1, Interrupt::default());
    let one = Machine { name: "one".to_owned(), ..machines::symmetry_a(1) };
    for experiment in catalogue() {
        if let Bodies::Machines { simulated: Body::Run(simulated), .. } = experiment.bodies
            && experiment.paper == Paper::All89
        {
            let outcome = (simulated.run)(&context, &one).unwrap();
            assert!(!outcome.verdict.because().is_empty(), "{}", experiment.id);
        }
    }
}

fn simulated(seed: u64) -> String {
    let all = catalogue();
    let filters = ["all89/table3.1", "all89/fig4.3"].map(str::to_owned);
    let tasks = plan(&select(&all, &filters).unwrap(), &Target::Papers).unwrap();
    let mut results = Results::waiting(&tasks, None, true, seed);
    for (entry, task) in results.entries.iter_mut().zip(&tasks) {
        let context = Context::new(true, seed, Interrupt::default());
        run_one(entry, task.call.as_ref().ok().unwrap(), &context, &points());
        entry.seconds = Took::Untold;
    }
    serde_json::to_string_pretty(&results).unwrap()
}

#[test]
fn every_point_that_a_paper_states_is_of_an_experiment_and_comes_to_its_chart() {
    let all = catalogue();
    for point in points() {
        let known = all.iter().any(|experiment| experiment.id == point.experiment);
        assert!(known, "{point:?}");
        assert!(point.y > 0.0 && point.passage.ends_with('.'), "{point:?}");
    }
    // Where no chart has the series, the run fails, and here all run: those of the locks, which
    // are brief.
    let results: Results = serde_json::from_str(&simulated(1)).unwrap();
    let entry = results.entries.iter().find(|entry| entry.id == "all89/table3.1").unwrap();
    let series = entry.outcome.pictures.iter().flat_map(|picture| &picture.series);
    let stated: Vec<f64> = series.flat_map(|of| &of.stated).map(|point| point.y).collect();
    assert_eq!(stated, [5_600.0]);
}

/// The output of another process with the same seed is compared in `tests/together/command.rs`.
#[test]
fn the_same_seed_gives_the_same_bytes_twice_in_one_process() {
    let first = simulated(1);
    // What this process has on its heap is not the runs'.
    let _between = vec![0_u8; 12_345];
    assert_eq!(first, simulated(1));
    assert_ne!(first, simulated(2));
    assert_eq!(serde_json::from_str::<Results>(&first).unwrap().entries.len(), 4);
}

//! Figure 3.5: queues examined by a processor that looks for a ready thread, against runnable
//! threads, 18 processors.
//!
//! Rule of the verdict: *holds* if equation 3.1 as printed gives the counted mean for every small r
//! and q (to twelve digits), and for every r of the picture a random scan of q = 18 queues lies
//! within 1 % of it; else *differs*.

use stanchion_formulas::scan::simulate::{self, Estimate};
use stanchion_formulas::{Random, scan};

use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Experiment, Paper};
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::{grouped, percent, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "all89/fig3.5",
    paper: Paper::All89,
    title: "Queues examined to find a ready thread, 18 processors (equation 3.1)",
    claim: "The closed form equals an exhaustive count for small r and q, and a Monte-Carlo \
     scan within 1 %.",
    bodies: Bodies::formula(run),
};

const QUEUES: u32 = 18;
/// Runnable threads up to which the picture goes.
const RUNNABLE: u32 = 54;
const SMALL_THREADS: u32 = 6;
const SMALL_QUEUES: u32 = 7;

fn run(context: &Context) -> Result<Outcome, Stop> {
    let runs = context.pick(200_000, 2_000_000);
    let mut random = Random::new(context.seed);
    // One step for each r, for each small q, and for each of the two cases beyond the picture.
    context.plan((RUNNABLE - QUEUES + SMALL_QUEUES) as usize + 2);

    let mut worst_count: f64 = 0.0;
    for queues in 1..=SMALL_QUEUES {
        for threads in 1..=SMALL_THREADS {
            let counted = scan::exhaustive(threads, queues).map_err(failed)?;
            let printed = scan::equation_3_1(threads, queues).map_err(failed)?;
            worst_count = worst_count.max((printed / counted - 1.0).abs());
        }
        context.step()?;
    }

    let mut closed = Vec::new();
    let mut walked = Vec::new();
    for threads in 1..=RUNNABLE - QUEUES {
        closed.push(scan::equation_3_1(threads, QUEUES).map_err(failed)?);
        walked.push(simulate::scan(threads, QUEUES, runs, &mut random).map_err(failed)?);
        context.step()?;
    }
    let worst_walk = closed
        .iter()
        .zip(&walked)
        .map(|(closed, walked)| (walked.mean / closed - 1.0).abs())
        .fold(0.0, f64::max);

    let arrivals = arrivals(runs, &mut random)?;
    context.step()?;
    let pairs = pairs(runs, &mut random)?;
    context.step()?;

    let twelve = worst_count < 1e-12;
    let walk = percent(worst_walk);
    let verdict = Verdict::when(
        twelve && worst_walk < 0.01,
        format!(
            "closed form and count {}, closed form and random scan differ by at most {walk}",
            if twelve {
                "agree to twelve digits".to_owned()
            } else {
                format!("differ by up to {}", percent(worst_count))
            }
        ),
    );
    let first = walked[0];
    let count = if twelve { "none in twelve digits".to_owned() } else { percent(worst_count) };
    Ok(Outcome {
        comparisons: vec![
            Comparison::new("E(1,18): the spike", "(1+18)/2 = 9.5 by equation 3.1", mean(first)),
            Comparison::new(
                "largest difference, closed form and exhaustive count",
                "0",
                format!("{count} (r ≤ {SMALL_THREADS}, q ≤ {SMALL_QUEUES})"),
            ),
            Comparison::new(
                "largest difference, closed form and random scan",
                "within 1 % (our bar)",
                format!("{walk} ({} scans for each r)", grouped(runs.into())),
            ),
        ],
        pictures: vec![picture(&closed, &walked)],
        tables: vec![arrivals, pairs],
        notes: vec![
            "Runnable threads count those that run. With n ≤ 18, 19 − n processors (that of the \
             new thread included) idle when a thread is created, and E(19 − n, 18) is how far \
             the nearest of them is; with n > 18, n − 18 threads are ready and E(n − 18, 18) is \
             how far the nearest one \
             is."
            .to_owned(),
            "Equation 3.1 is right as printed, its lone q included. That two processors \
             together examine E(r,q) + E(r−1,q) is exact for r = 2 only; see the second table \
             and the documentation of \
             stanchion_formulas::scan."
                .to_owned(),
        ],
        ..Outcome::new(verdict)
    })
}

fn failed(error: scan::ScanError) -> Stop {
    Stop::Failed(error.to_string())
}

fn mean(estimate: Estimate) -> String {
    format!("{:.3} ± {:.3}", estimate.mean, estimate.standard_error)
}

/// E over runnable threads: idle processors on the left of the spike, ready threads on its right.
fn picture(closed: &[f64], walked: &[Estimate]) -> Picture {
    let argument = |runnable: u32| {
        let idle_or_ready =
            if runnable <= QUEUES { QUEUES + 1 - runnable } else { runnable - QUEUES };
        (idle_or_ready - 1) as usize
    };
    let over = |value: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
        (1..=RUNNABLE).map(|runnable| (f64::from(runnable), value(argument(runnable)))).collect()
    };
    Picture {
        title: "Queues examined against runnable threads, 18 processors".to_owned(),
        shape: Shape::Lines,
        x: Axis::linear("runnable threads"),
        y: Axis::linear("queues examined"),
        series: vec![
            Series::new("equation 3.1", over(&|index| closed[index])),
            Series::new("random scan", over(&|index| walked[index].mean)).dotted(),
        ],
    }
}

/// One more thread arrives during the scan: E(r+1,q) ≤ C ≤ E(r,q).
fn arrivals(runs: u32, random: &mut Random) -> Result<Table, Stop> {
    let mut rows = Vec::new();
    for threads in [1, 2, 4, 8] {
        let (least, most) = scan::arrival_bounds(threads, QUEUES).map_err(failed)?;
        for examined in [0, 3, 9] {
            let seen = simulate::scan_with_arrival(threads, QUEUES, examined, runs / 4, random)
                .map_err(failed)?;
            let exact = scan::with_arrival(threads, QUEUES, examined).map_err(failed)?;
            rows.push(vec![
                format!("r = {threads}, after {examined} queues"),
                significant(least),
                significant(exact),
                mean(seen),
                significant(most),
            ]);
        }
    }
    Ok(Table {
        title: "A thread arrives during the scan of 18 queues: E(r+1,18) ≤ C ≤ \
         E(r,18)"
            .to_owned(),
        columns: ["case", "E(r+1,18)", "C, exact", "C, random scan", "E(r,18)"]
            .map(str::to_owned)
            .into(),
        rows,
    })
}

/// A second processor becomes idle: E(r,q) + E(r−1,q).
fn pairs(runs: u32, random: &mut Random) -> Result<Table, Stop> {
    let mut rows = Vec::new();
    for threads in [2, 3, 4, 8, 18] {
        let paper = scan::two_processors(threads, QUEUES).map_err(failed)?;
        let seen = simulate::two_processors(threads, QUEUES, runs / 4, random).map_err(failed)?;
        rows.push(vec![
            format!("r = {threads}"),
            significant(paper),
            mean(seen),
            format!("{:+.1} %", 100.0 * (seen.mean / paper - 1.0)),
        ]);
    }
    Ok(Table {
        title: "Two processors scan 18 queues: queues that both examine".to_owned(),
        columns: ["ready threads", "E(r,18) + E(r−1,18)", "random scan", "difference"]
            .map(str::to_owned)
            .into(),
        rows,
    })
}

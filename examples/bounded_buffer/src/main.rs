//! Simulates both buffers on machines of 2 to 16 processors, prints their costs, and draws the last
//! runs; see the library.

#[cfg(not(stanchion_simulated))]
fn main() {
    eprintln!("there is nothing to simulate without RUSTFLAGS=\"--cfg stanchion_simulated\"");
    std::process::exit(2);
}

#[cfg(stanchion_simulated)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    shown::main()
}

#[cfg(stanchion_simulated)]
mod shown {
    use std::error::Error;
    use std::fs;
    use std::path::Path;

    use bounded_buffer::simulation::{BEGIN, ENTRIES, simulate};
    use bounded_buffer::{Apart, Near};
    use stanchion::simulator::{Arena, Run, Time};

    /// Gives each run memory of its own: the same words share a line on every run.
    #[global_allocator]
    static ARENA: Arena = Arena;

    pub fn main() -> Result<(), Box<dyn Error>> {
        println!("{:>10}  {:>22}  {:>26}", "", "ns for each entry", "lines from other caches");
        println!(
            "{:>10}  {:>10}  {:>10}  {:>14}  {:>10}",
            "processors", "near", "apart", "near", "apart"
        );
        for processors in [2, 4, 8, 16] {
            let (near, apart) = (simulate::<Near>(processors)?, simulate::<Apart>(processors)?);
            let lines = |run: &Run<f64>| {
                let entries = processors / 2 * ENTRIES;
                run.statistics.accesses.per(entries as u64).transfers
            };
            println!(
                "{processors:>10}  {:>10.1}  {:>10.1}  {:>14.2}  {:>10.2}",
                near.result,
                apart.result,
                lines(&near),
                lines(&apart)
            );
            if processors == 16 {
                show("near", &near)?;
                show("apart", &apart)?;
            }
        }
        Ok(())
    }

    /// Prints the counts, and draws the waiting threads: the whole run, and a few microseconds of
    /// it.
    fn show(name: &str, run: &Run<f64>) -> Result<(), Box<dyn Error>> {
        let statistics = &run.statistics;
        println!("\nThe ends {name}: {statistics}");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
        fs::create_dir_all(&folder)?;
        let timeline = run.timeline.as_ref().ok_or("the run has no timeline")?;
        let begin = Time::nanos(BEGIN);
        let middle = begin + Time::picos((statistics.elapsed - begin).as_picos() / 2);
        for (part, between) in
            [("", (begin, statistics.elapsed)), ("-closer", (middle, middle + Time::micros(4)))]
        {
            let title = format!("A bounded buffer on 16 processors, its ends {name}");
            let drawing = timeline.drawing(statistics).between(between.0, between.1).title(title);
            let file = folder.join(format!("{name}{part}.svg"));
            fs::write(&file, drawing.to_string())?;
            println!("{}", file.display());
        }
        Ok(())
    }
}

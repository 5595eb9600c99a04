//! Figure 1: the waits for locks of the threads of an operating system, Taos. Taos is not available
//! here. Recorded instead is a program of the kind that kept it busy in figure 1 (c), a parallel
//! build: `make -j` compiles C, and the linker `ld.gold` links it with four threads.
//!
//! Rule of the verdict: *a large percentage of the waits require only a few spins. Another large
//! percentage require blocking* (section 3) is taken to mean that at least a quarter of the waits
//! were no longer than C and at least a quarter longer. *not judged* below 100 waits; *not run*
//! where a program or the shim is missing, or on a system that has no shim.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::foreign::Foreign;
use super::recorded::{self, Source};
use super::show;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Experiment, Paper};
use stanchion_study::outcome::{Outcome, Verdict};
use stanchion_study::units::percent;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "klmo91/fig1",
    paper: Paper::Klmo91,
    title: "Lock waits of an operating system: here, of a parallel build",
    claim: "A large percentage of the waits require only a few spins, another large percentage \
            require blocking.",
    bodies: Bodies::real(
        run,
        "it records a program that this project did not write, which runs on a real machine only",
    ),
};

pub(crate) static BUILD: Foreign = Foreign {
    name: "parallel build",
    beside: "Taos (M2+)",
    needs: &["make", "cc", "ld.gold"],
    packages: "make, gcc and binutils (binutils-gold where ld.gold is a package of its own)",
    prepare,
    command: |_| ["make", "-s", "-j4"].map(str::to_owned).into(),
    drive: None,
    what: |context| {
        format!(
            "A parallel build, by make -j4: {} C files, linked into {} programs by ld.gold with 4 threads each",
            files(context),
            programs(context)
        )
    },
};

fn files(context: &Context) -> usize {
    context.pick(100, 200)
}

fn programs(context: &Context) -> usize {
    context.pick(40, 150)
}

/// C files of forty functions each, and a makefile that links all of them into every program.
fn prepare(place: &Path, context: &Context) -> std::io::Result<()> {
    let files = files(context);
    // Writing to a string does not fail.
    let mut main = String::new();
    for file in 0..files {
        let mut text = String::new();
        for function in 0..40 {
            let _ = writeln!(
                text,
                "int f{file}_{function}(int x) {{ static int s = {function}; s += x; return s * {file}; }}"
            );
        }
        fs::write(place.join(format!("f{file}.c")), text)?;
        let _ = writeln!(main, "int f{file}_0(int);");
    }
    main.push_str("int main(void) { int s = 0;\n");
    for file in 0..files {
        let _ = writeln!(main, "s += f{file}_0({file});");
    }
    main.push_str("return s == 0; }\n");
    fs::write(place.join("main.c"), main)?;
    let programs: Vec<String> =
        (0..programs(context)).map(|number| format!("program{number}")).collect();
    let makefile = format!(
        "OBJECTS := $(patsubst %.c,%.o,$(wildcard *.c))\n\
         PROGRAMS := {}\n\
         all: $(PROGRAMS)\n\
         %.o: %.c\n\tcc -g -c $< -o $@\n\
         $(PROGRAMS): $(OBJECTS)\n\tcc -fuse-ld=gold -Wl,--threads -Wl,--thread-count,4 $(OBJECTS) -o $@\n",
        programs.join(" ")
    );
    fs::write(place.join("Makefile"), makefile)
}

fn run(context: &Context) -> Result<Outcome, Stop> {
    context.plan(1);
    show::one(recorded::of(Source::Build, context)?, verdict)
}

/// Judges the share of waits that were longer than C.
fn verdict(long: f64) -> Verdict {
    let figures = format!(
        "{} of the waits were no longer than C, {} were longer",
        percent(1.0 - long),
        percent(long)
    );
    Verdict::when((0.25..=0.75).contains(&long), figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_study::interrupt::Interrupt;

    #[test]
    fn both_kinds_of_waits_must_be_many() {
        for (long, name) in [(0.2, "differs"), (0.25, "holds"), (0.75, "holds"), (0.8, "differs")] {
            assert_eq!(verdict(long).name(), name);
        }
    }

    #[test]
    fn every_file_is_linked_into_every_program() {
        let place = std::env::temp_dir().join(format!("stanchion-build-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let context = Context::new(true, 1, Interrupt::default());
        prepare(&place, &context).unwrap();
        let main = fs::read_to_string(place.join("main.c")).unwrap();
        assert_eq!(main.matches("s += f").count(), files(&context));
        let sources = fs::read_dir(&place).unwrap().count();
        assert_eq!(sources, files(&context) + 2);
        fs::remove_dir_all(&place).unwrap();
    }
}

//! The parallel builds of [figure 1](super::fig1): `make -j` compiles C, and the linker `ld.gold`
//! links it with four threads; and [our stand-in](super::stand_in) for it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::external::External;
use super::stand_in;
use stanchion_study::context::Context;
use stanchion_study::units::grouped;

pub(crate) static BUILD: External = External {
    name: "parallel build",
    beside: "Taos (M2+)",
    needs: &["make", "cc", "ld.gold"],
    packages: "packages make, gcc and binutils (binutils-gold where ld.gold is a package of its own)",
    prepare,
    command: |_| Ok(["make", "-s", "-j4"].map(Into::into).into()),
    drive: None,
    what: |context| {
        format!(
            "A parallel build, by make -j4: {} C files, linked into {} programs by ld.gold with 4 threads each",
            files(context),
            programs(context)
        )
    },
};

/// Our stand-in, which needs no compiler.
pub(crate) static OWN: External = External {
    name: "build (ours)",
    beside: "Taos (M2+)",
    needs: &[],
    packages: "",
    prepare: |_, _| Ok(()),
    command: |context| stand_in::command(stand_in::BUILD, own_files(context)),
    drive: None,
    what: |context| {
        format!(
            "A build that we wrote, with 4 threads: {} files are compiled and linked within one program",
            grouped(own_files(context).into())
        )
    },
};

fn own_files(context: &Context) -> u32 {
    context.length(10_000, 40_000)
}

fn files(context: &Context) -> usize {
    context.length(100, 200) as usize
}

fn programs(context: &Context) -> usize {
    context.length(80, 150) as usize
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

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_study::interrupt::Interrupt;

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

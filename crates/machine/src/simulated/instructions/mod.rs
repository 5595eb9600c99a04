//! The instructions that an algorithm executes between its accesses, which a simulated machine
//! charges.
//!
//! They are charged the same on every computer, whatever compiler and optimization built the
//! program. So the instructions are not counted in the run: they stand in a table, one row for each
//! source file, which `cargo xtask instructions` counts in an optimized build and compares. An
//! access is charged the average of its file.
//!
//! A file that is not in the table (a test, a user's own lock) is charged the average of all files.
//! Those in [`DECLARED`] are charged nothing, because they declare what they compute by
//! [`work`](crate::work).

use core::cell::Cell;
use core::panic::Location;

mod table;

use table::{AVERAGE, FILES};

/// Hundredths of an instruction.
type Instructions = u32;

/// Crates that declare their computation.
const DECLARED: [&str; 2] = ["applications", "simulated-locks"];

/// The file with accesses that are instructions of a machine with a linked load and a conditional
/// store, and the instructions before each of them.
///
/// The table has what `LinkedCell` needs to be that on any processor: it packs a tag beside each
/// value. A MIPS processor executes LL, the change of the value, SC and a branch in place of that,
/// four for two accesses. The rest is the half of a call, as for the counter that adds at once
/// (`counter/fetch_add.rs`). The number is worked out, not counted. Of the machines on which
/// instructions take time, the Challenge alone has a linked load. `ms97/fig4` is judged there.
const LINKED: (&str, &str, Instructions) = ("lockfree", "linked_cell.rs", (400 + 850) / 2);

/// The number of files of which a thread remembers the rows.
const REMEMBERED: usize = 256;

std::thread_local! {
    /// The rows of files, by the addresses of their names.
    static ROWS: [Cell<(usize, Instructions)>; REMEMBERED] =
        const { [const { Cell::new((0, 0)) }; REMEMBERED] };
}

/// Returns the instructions before an access at `place`, in hundredths.
///
/// Not inlined, and with the arguments of C: what counts the instructions stops the processor here
/// and takes the place out of the first argument.
#[inline(never)]
pub(crate) extern "C" fn before(place: &'static Location<'static>) -> Instructions {
    let name = place.file();
    let address = name.as_ptr().addr();
    ROWS.with(|rows| {
        let row = &rows[(address ^ address >> 8) % REMEMBERED];
        let (of, instructions) = row.get();
        if of == address {
            return instructions;
        }
        let instructions = row_of(name);
        row.set((address, instructions));
        instructions
    })
}

/// Looks a file up.
#[cold]
fn row_of(file: &str) -> Instructions {
    let Some((package, path)) = split(file) else { return AVERAGE };
    if DECLARED.contains(&package) {
        return 0;
    }
    if (package, path) == (LINKED.0, LINKED.1) {
        return LINKED.2;
    }
    let found = FILES.binary_search_by(|(of, other, _)| (*of, *other).cmp(&(package, path)));
    found.map_or(AVERAGE, |index| FILES[index].2)
}

/// Splits the name of a source file into the crate's name and the path in its sources. A twin has
/// the name of its crate.
fn split(file: &str) -> Option<(&str, &str)> {
    let (folder, path) = file.rsplit_once("/src/")?;
    let package = folder.rsplit('/').next()?;
    let package = package.strip_prefix("stanchion-").unwrap_or(package);
    let end = package.find("-under-simulator").unwrap_or(package.len());
    Some((&package[..end], path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twin_has_the_name_of_its_crate() {
        for file in [
            "crates/spin/src/mcs.rs",
            "crates/simulated/spin/../../spin/src/mcs.rs",
            "/registry/stanchion-spin-under-simulator-0.1.0/src/mcs.rs",
        ] {
            assert_eq!(split(file), Some(("spin", "mcs.rs")));
        }
        assert_eq!(split("tests/mcs.rs"), None);
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(FILES.is_sorted_by(|one, other| (one.0, one.1) < (other.0, other.1)));
    }
}

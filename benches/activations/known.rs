//! The options of this program.

use crate::options::Number;

pub(crate) const HELP: &str = "\
cargo bench -p benches --bench activations -- [SECTION]... [options]

sections   fork, signal, blocked, upcall, hash, hogs, waits; all of them if none is named
options    --rounds N           rounds (5)
           --milliseconds N     how long a contestant runs in a cell of a round (100)
           --files N            files of section hash (20000)
           --quick              one round of 20 milliseconds, 2000 files
           --only TEXT          only cells whose name contains TEXT, such as '1 processor' or 'cold'; several are or'ed
           --contestant TEXT    only contestants whose name contains TEXT; several are or'ed
";

pub(crate) const SECTIONS: [&str; 7] =
    ["fork", "signal", "blocked", "upcall", "hash", "hogs", "waits"];

pub(crate) const NUMBERS: [Number; 3] = [
    Number { name: "--rounds", usually: 5, quick: 1, test: 1 },
    Number { name: "--milliseconds", usually: 100, quick: 20, test: 1 },
    Number { name: "--files", usually: 20_000, quick: 2_000, test: 100 },
];

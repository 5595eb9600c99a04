//! The options of this program.

use crate::options::Number;

pub(crate) const HELP: &str = "\
cargo bench -p benches --bench gang -- [SECTION]... [options]

sections   switch, slots, gangs, pair, grid; all of them if none is named
options    --rounds N           rounds (5)
           --milliseconds N     how long a contestant runs in a cell of a round (60)
           --quick              one round of 15 milliseconds
           --only TEXT          only cells whose name contains TEXT, such as '4 threads' or '2 hogs'; several are or'ed
           --contestant TEXT    only contestants whose name contains TEXT; several are or'ed
";

pub(crate) const SECTIONS: [&str; 5] = ["switch", "slots", "gangs", "pair", "grid"];

pub(crate) const NUMBERS: [Number; 2] = [
    Number { name: "--rounds", usually: 5, quick: 1, test: 1 },
    Number { name: "--milliseconds", usually: 60, quick: 15, test: 1 },
];

//! The policies of the competitive mutex that a program can have: those of the table of
//! `stanchion-competitive`, and the one that wants a file.

use crate::Program;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::Error;
use clap::{Arg, Command};
use stanchion_competitive::waits::{self, Recorder};
use stanchion_competitive::{Policy, RawPolicyMutex};
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

/// A policy by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in `--policy`.
    pub name: &'static str,
    /// The line in `--help`.
    pub about: &'static str,
}

macro_rules! policies {
    ([] $({
        $test:ident: $policy:ty,
        name: $written:literal,
        public: $public:tt,
        bytes: $bytes:literal,
        race: $race:tt,
        command: [$($name:literal, $about:literal)?],
    })+) => {
        /// Every policy that needs nothing but its name.
        pub const POLICIES: &[Entry] = &[$($(Entry { name: $name, about: $about },)?)+];

        /// Runs `program` with mutexes of the policy called `name`, which the parser of the
        /// arguments has let through.
        pub(crate) fn run<P: Program>(name: &str, recorded: bool, program: P) -> P::Outcome {
            match name {
                $($($name => run_with(|_| <$policy as Policy>::INIT, recorded, program),)?)+
                other => unreachable!("clap lets only names of the table through, not {other}"),
            }
        }
    };
}

stanchion_competitive::__policies!(policies);

/// The policy with a threshold for each lock, which come from a file.
const OPTIMAL_ONLINE: &str = "optimal-online=";

/// Runs `program` with mutexes that get their policies from `make`, by their names. With
/// `recorded`, their waits are recorded from now on.
pub(crate) fn run_with<Q: Policy + 'static, P: Program>(
    make: impl Fn(&str) -> Q,
    recorded: bool,
    program: P,
) -> P::Outcome {
    if !recorded {
        return program.run(&|name| RawPolicyMutex::with_policy(make(name)));
    }
    waits::restart();
    program.run(&|name| {
        RawPolicyMutex::with_policy(Recorder::with_policy(waits::intern(name), make(name)))
    })
}

/// The value of `--policy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// One of the table.
    Named(String),
    /// The optimum on-line, with the thresholds of that file.
    OptimalOnline(PathBuf),
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::OptimalOnline(file) => write!(f, "{OPTIMAL_ONLINE}{}", file.display()),
        }
    }
}

/// A parser of `--policy` for clap. It suggests the nearest of the known names for an unknown one.
#[derive(Clone, Debug)]
pub(crate) struct Parser;

impl Parser {
    fn values() -> Vec<PossibleValue> {
        let known = PossibleValue::new("optimal-online=FILE")
            .help("the paper's: the thresholds of FILE, computed from recorded waits by `stanchion advise --thresholds FILE`");
        let named = POLICIES.iter().map(|it| PossibleValue::new(it.name).help(it.about));
        named.chain([known]).collect()
    }
}

impl TypedValueParser for Parser {
    type Value = Chosen;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Chosen, Error> {
        let file = value.to_str().and_then(|value| value.strip_prefix(OPTIMAL_ONLINE));
        if let Some(file) = file.filter(|file| !file.is_empty()) {
            return Ok(Chosen::OptimalOnline(file.into()));
        }
        let named = PossibleValuesParser::new(Self::values());
        named.parse_ref(command, argument, value).map(Chosen::Named)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Self::values().into_iter()))
    }
}

//! The limits of machines. A fault is reported by field, value and mend, before a run would divide
//! by it.

use super::{Directory, Jitter, Machine, Membarrier, Memory, PROCESSORS, Processor, Scheduling};
use super::{Uncached, Update, WriteBack, WriteThrough};
use crate::Time;
use core::fmt::Display;

/// The longest line, in bytes: a page.
const LINE: usize = 4_096;

/// The longest cycle: that of a processor of 100 kHz.
const CYCLE: Time = Time::micros(10);

/// The longest instruction.
const INSTRUCTION: Time = Time::micros(100);

/// The most applications that share the processors.
const APPLICATIONS: usize = 1_000;

/// An access or a switch that takes longer is a slip in the unit.
const LONGEST: Time = Time::millis(1_000);

/// An interrupt that takes longer is a slip in the unit.
const INTERRUPT: Time = Time::millis(1);

/// Why a description is of no machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("machine {machine:?}: {field} is {value}: {mend}")]
pub struct Invalid {
    /// The machine's name.
    pub machine: String,
    /// The field, as `memory.write-back.line`.
    pub field: String,
    /// Its value.
    pub value: String,
    /// The values that it can have, and the reason.
    pub mend: String,
}

/// Names fields and their values: `named!(self: hit, miss)`.
macro_rules! named {
    ($of:ident: $($field:ident),*) => { &[$((stringify!($field), $of.$field)),*] };
}

/// A field that is wrong; the machine's name comes later.
struct Wrong {
    /// The name of the field.
    field: String,
    /// Its value.
    value: String,
    /// The values that it can have, and the reason.
    mend: String,
}

fn require(holds: bool, field: &str, value: impl Display, mend: &str) -> Result<(), Wrong> {
    if holds {
        return Ok(());
    }
    Err(Wrong { field: field.into(), value: value.to_string(), mend: mend.into() })
}

impl Machine {
    /// Checks that there can be such a machine.
    ///
    /// ```
    /// use stanchion_simulator::machines;
    /// let mut machine = machines::firefly();
    /// assert_eq!(machine.check(), Ok(()));
    /// machine.processors = 0;
    /// let why = machine.check().unwrap_err().to_string();
    /// assert_eq!(why, r#"machine "firefly": processors is 0: give it 1 to 1024"#);
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`] for the first field that is impossible.
    pub fn check(&self) -> Result<(), Invalid> {
        self.wrong().map_err(|Wrong { field, value, mend }| Invalid {
            machine: self.name.clone(),
            field,
            value,
            mend,
        })
    }

    fn wrong(&self) -> Result<(), Wrong> {
        let named = !self.name.trim().is_empty();
        require(named, "name", format!("{:?}", self.name), "reports must call it something")?;
        let count = self.processors;
        let possible = (1..=PROCESSORS).contains(&count);
        require(possible, "processors", count, &format!("give it 1 to {PROCESSORS}"))?;
        let proper = self.scale.is_finite() && self.scale > 0.0;
        require(
            proper,
            "scale",
            self.scale,
            "it must be a number above 0; 1 is a machine of today",
        )?;
        let mend = format!("give it at most {LONGEST}");
        require(self.pause <= LONGEST, "pause", self.pause, &mend)?;
        self.processor.wrong()?;
        self.scheduling.wrong()?;
        self.jitter.wrong()?;
        self.membarrier.as_ref().map_or(Ok(()), Membarrier::wrong)?;
        self.memory.wrong(count, self.jitter.arbitration)
    }
}

impl Processor {
    fn wrong(&self) -> Result<(), Wrong> {
        let Self { cycle, cycles_per_instruction, compiler } = *self;
        let factors = [
            ("cycles_per_instruction", cycles_per_instruction),
            ("compiler", compiler.unwrap_or(1.0)),
        ];
        for (field, value) in factors {
            let field = format!("processor.{field}");
            let possible = (0.01..=100.0).contains(&value);
            require(possible, &field, value, "give it a number from 0.01 to 100")?;
        }
        let mend = format!("give it a time from 1 ps to {CYCLE}");
        require(cycle > Time::ZERO && cycle <= CYCLE, "processor.cycle", cycle, &mend)?;
        let charged = if compiler.is_some() { self.instruction() } else { self.own_instruction() };
        let mend = format!(
            "its fields multiply to the time of an instruction, from 1 ps to {INSTRUCTION}"
        );
        require(charged > Time::ZERO && charged <= INSTRUCTION, "processor", charged, &mend)
    }
}

impl Scheduling {
    /// Returns the time of a call to the kernel that need not wait, as a wake-up without a sleeper:
    /// the way in and out again, which is taken to be a quarter of [`wake`](Self::wake).
    #[must_use]
    pub fn call(&self) -> Time {
        Time::picos(self.wake.as_picos() / 4)
    }

    fn wrong(&self) -> Result<(), Wrong> {
        let Self { quantum, switch, park, wake, kick, wakeup, spawn, applications, .. } = self;
        let Self { grace, interrupt, skew, upcall, .. } = self;
        let positive = *quantum > Time::ZERO;
        require(positive, "scheduling.quantum", quantum, "a thread must run for some time")?;
        let times = [("switch", switch), ("park", park), ("wake", wake)];
        let more = [("kick", kick), ("wakeup", wakeup), ("spawn", spawn), ("grace", grace)];
        let asked = [("interrupt", interrupt), ("skew", skew), ("upcall", upcall)];
        for (field, time) in times.into_iter().chain(more).chain(asked) {
            let field = format!("scheduling.{field}");
            require(*time <= LONGEST, &field, time, &format!("give it at most {LONGEST}"))?;
        }
        let possible = (1..=APPLICATIONS).contains(applications);
        let mend = format!("give it 1, for this application alone, to {APPLICATIONS}");
        require(possible, "scheduling.applications", applications, &mend)
    }
}

impl Jitter {
    fn wrong(&self) -> Result<(), Wrong> {
        let Self { refresh_period, refresh, tick_period, tick, .. } = self;
        let parts = [
            ("refresh", refresh, "refresh_period", refresh_period),
            ("tick", tick, "tick_period", tick_period),
        ];
        for (field, part, period, whole) in parts {
            let path = format!("jitter.{period}");
            require(*whole <= LONGEST, &path, whole, &format!("give it at most {LONGEST}"))?;
            // A period of 0 means that there is none.
            let mend = format!("it must be shorter than `{period}`, which is {whole}");
            let possible = *whole == Time::ZERO || part < whole;
            require(possible, &format!("jitter.{field}"), part, &mend)?;
        }
        Ok(())
    }
}

impl Membarrier {
    fn wrong(&self) -> Result<(), Wrong> {
        let mend = format!("give it at most {INTERRUPT}");
        for (field, time) in
            named!(self: request, send, delivery, interrupt, acknowledgement).iter()
        {
            let field = format!("membarrier.{field}");
            require(*time <= INTERRUPT, &field, time, &mend)?;
        }
        let mend = "an interrupted processor must lose some time; \
                    leave `membarrier` out if the machine has none";
        require(self.interrupt > Time::ZERO, "membarrier.interrupt", self.interrupt, mend)
    }
}

/// The fields of one memory system, with the name that JSON has for it.
struct Fields<'a> {
    /// The name of the memory system.
    kind: &'static str,
    /// The number of bytes of a line.
    line: usize,
    /// Times that an access takes by itself.
    takes: &'a [(&'static str, Time)],
    /// Times that come on top, and may be nothing.
    beyond: &'a [(&'static str, Time)],
    /// Occupancies, each with what contains it.
    occupies: &'a [(&'static str, &'static str)],
    /// Pairs of times: the first cannot be shorter than the second.
    slower: &'a [(&'static str, &'static str)],
}

impl Fields<'_> {
    fn time(&self, name: &str) -> Time {
        let mut all = self.takes.iter().chain(self.beyond);
        all.find(|(field, _)| *field == name).expect("a field of this memory system").1
    }

    fn wrong(&self, arbitration: Time) -> Result<(), Wrong> {
        let path = |field: &str| format!("memory.{}.{field}", self.kind);
        let possible = self.line.is_power_of_two() && self.line <= LINE;
        let mend = format!("give it a power of two of bytes, at most {LINE}");
        require(possible, &path("line"), self.line, &mend)?;
        for (field, time) in self.takes.iter().chain(self.beyond) {
            let mend = format!("give it at most {LONGEST}");
            require(*time <= LONGEST, &path(field), time, &mend)?;
        }
        for (field, time) in self.takes {
            let mend = "an access must take some time, or spinning would take none";
            require(*time > Time::ZERO, &path(field), time, mend)?;
        }
        for (part, whole) in self.occupies {
            let mend = format!("it is a part of `{whole}`, which is {}", self.time(whole));
            let (time, whole) = (self.time(part), self.time(whole));
            require(time <= whole, &path(part), time, &mend)?;
        }
        for (slow, fast) in self.slower {
            let mend = format!("it cannot be faster than `{fast}`, which is {}", self.time(fast));
            let (time, fast) = (self.time(slow), self.time(fast));
            require(time >= fast, &path(slow), time, &mend)?;
        }
        for (part, whole) in self.occupies {
            // A transaction that is done early must not end before its occupancy does.
            let rest = self.time(whole) - self.time(part);
            let mend = format!("give it at most {rest}: what `{whole}` takes beyond `{part}`");
            require(arbitration <= rest, "jitter.arbitration", arbitration, &mend)?;
        }
        Ok(())
    }
}

impl Memory {
    /// Bytes of a line.
    #[must_use]
    pub fn line(&self) -> usize {
        match self {
            Self::WriteThrough(WriteThrough { line, .. })
            | Self::WriteBack(WriteBack { line, .. })
            | Self::Update(Update { line, .. })
            | Self::Uncached(Uncached { line, .. })
            | Self::Directory(Directory { line, .. }) => *line,
        }
    }

    /// Returns the time in which a processor gets a word that another has written, if nothing else
    /// is under way. The other one is on another socket if there are several.
    ///
    /// ```
    /// use stanchion_simulator::{Time, machines};
    /// assert_eq!(machines::challenge().memory.transfer(), Time::nanos(1_200));
    /// ```
    #[must_use]
    pub fn transfer(&self) -> Time {
        match self {
            Self::WriteThrough(times) => times.miss,
            Self::WriteBack(times) => times.transfer,
            Self::Update(times) => times.write,
            Self::Uncached(times) => times.remote,
            Self::Directory(times) if times.sockets > 1 => times.far,
            Self::Directory(times) => times.near,
        }
    }

    fn wrong(&self, processors: usize, arbitration: Time) -> Result<(), Wrong> {
        let line = self.line();
        match self {
            Self::WriteThrough(own) => Fields {
                kind: "write-through",
                line,
                takes: named!(own: hit, miss, write, exchange),
                beyond: named!(own: miss_bus, write_bus, exchange_bus),
                occupies: &[
                    ("miss_bus", "miss"),
                    ("write_bus", "write"),
                    ("exchange_bus", "exchange"),
                ],
                slower: &[("miss", "hit"), ("exchange", "write")],
            }
            .wrong(arbitration),
            Self::WriteBack(own) => Fields {
                kind: "write-back",
                line,
                takes: named!(own: hit, miss, transfer, upgrade),
                beyond: named!(own: exchange, miss_bus, transfer_bus, upgrade_bus),
                occupies: &[
                    ("miss_bus", "miss"),
                    ("transfer_bus", "transfer"),
                    ("upgrade_bus", "upgrade"),
                ],
                slower: &[("miss", "hit"), ("transfer", "hit"), ("upgrade", "hit")],
            }
            .wrong(arbitration),
            Self::Update(own) => Fields {
                kind: "update",
                line,
                takes: named!(own: hit, miss, write),
                beyond: named!(own: exchange, miss_bus, write_bus),
                occupies: &[("miss_bus", "miss"), ("write_bus", "write")],
                slower: &[("miss", "hit"), ("write", "hit")],
            }
            .wrong(arbitration),
            Self::Uncached(own) => Fields {
                kind: "uncached",
                line,
                takes: named!(own: local, remote),
                beyond: named!(own: bus, module, exchange),
                occupies: &[("bus", "remote"), ("module", "local")],
                slower: &[("remote", "local")],
            }
            .wrong(arbitration),
            Self::Directory(own) => {
                let sockets = own.sockets;
                let divides = sockets > 0 && processors.is_multiple_of(sockets);
                let mend = format!("{processors} processors must be divided among them evenly");
                require(divides, "memory.directory.sockets", sockets, &mend)?;
                Fields {
                    kind: "directory",
                    line,
                    takes: named!(own: hit, memory, near, far, upgrade, far_upgrade),
                    beyond: named!(own: exchange, line_busy, link_busy),
                    occupies: &[
                        ("line_busy", "memory"),
                        ("link_busy", "far"),
                        ("link_busy", "far_upgrade"),
                    ],
                    slower: &[
                        ("memory", "hit"),
                        ("near", "hit"),
                        ("far", "near"),
                        ("upgrade", "hit"),
                        ("far_upgrade", "upgrade"),
                    ],
                }
                .wrong(arbitration)
            }
        }
    }
}

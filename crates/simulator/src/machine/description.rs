//! The types of a description.

use crate::Time;
use serde::{Deserialize, Serialize};

/// The most processors that a machine can have.
pub const PROCESSORS: usize = 1_024;

/// A multiprocessor: processors, memory system, scheduler. Plain data;
/// [`machines`](crate::machines) has the papers' own.
///
/// A run refuses a description that [`check`](Self::check) refuses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The name in reports.
    pub name: String,
    /// The number of processors, 1 to [`PROCESSORS`].
    pub processors: usize,
    /// The time that a processor takes for instructions.
    pub processor: Processor,
    /// The way in which a processor reaches a word that others use too.
    pub memory: Memory,
    /// The scheduling, and the costs of a switch.
    pub scheduling: Scheduling,
    /// The jitter that keeps two processors that run the same loop from marching in step.
    pub jitter: Jitter,
    /// The number of this machine's nanoseconds in one nanosecond of the *code's* clock. Code with
    /// constants for a processor of today (waiters that stay away for 30 µs) keeps its proportions
    /// on a machine that is so many times slower. 1 on a machine of today.
    pub scale: f64,
    /// The time of the pause hint of its processors. A thread that spins on a word looks at it so
    /// far apart, and notices a write at its next look. 0 if there is no such instruction: spinners
    /// look without a break, and a turn of a loop that waits for something else takes 2 ns of the
    /// code's clock.
    pub pause: Time,
    /// Set if a lock is released by an exchange, because the machine has no other way that orders
    /// (Symmetry).
    pub release_by_exchange: bool,
    /// Set if an exchange is a linked load and a conditional store (MIPS). The load fetches the
    /// line as any load does. The store then asks other caches to give up their copies. It fails
    /// if the line was written in between, and the load is made again. A compare-exchange that
    /// finds another value than it expects has only loaded: it takes the line from no other cache.
    pub linked: bool,
    /// The barrier that the kernel puts into the other running threads of a program. `None` if it
    /// has none: both sides of an asymmetric fence are fences then.
    pub membarrier: Option<Membarrier>,
}

impl Machine {
    /// Returns the same machine without [jitter](Self::jitter): each access takes exactly its time.
    ///
    /// This is for tests and tables that count what code asks of a machine. On a machine with
    /// jitter, one access more or less shifts all that comes after it.
    ///
    /// ```
    /// use stanchion_simulator::machine::Jitter;
    /// use stanchion_simulator::machines;
    /// assert_ne!(machines::firefly().jitter, Jitter::NONE);
    /// assert_eq!(machines::firefly().steady().jitter, Jitter::NONE);
    /// ```
    #[must_use]
    pub fn steady(mut self) -> Self {
        self.jitter = Jitter::NONE;
        self
    }

    /// Returns the same machine without [`membarrier`](Self::membarrier): both sides of an
    /// asymmetric fence are fences.
    ///
    /// ```
    /// use stanchion_simulator::machines;
    /// assert!(machines::modern(4).membarrier.is_some());
    /// assert_eq!(machines::modern(4).symmetric_fences().membarrier, None);
    /// // The papers' machines had no such barrier.
    /// assert_eq!(machines::firefly().symmetric_fences(), machines::firefly());
    /// ```
    #[must_use]
    pub fn symmetric_fences(mut self) -> Self {
        self.membarrier = None;
        self
    }
}

/// The times of a barrier in the other running threads of a program: Linux's expedited membarrier.
///
/// The processor that asks interrupts each processor that runs another thread of the same address
/// space, one after another. Then it waits for the last acknowledgement. The kernel serves one call
/// at a time, as Linux does since 6.8 (`membarrier_ipi_mutex` in `kernel/sched/membarrier.c`).
///
/// With one other processor a barrier takes `request + send + delivery + acknowledgement`. With
/// none, it takes `request`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Membarrier {
    /// The system call, with its look at the threads that run.
    pub request: Time,
    /// The time that the processor that asks takes for each processor that it interrupts.
    pub send: Time,
    /// From the sending until the other processor takes the interrupt.
    pub delivery: Time,
    /// The time that the interrupted processor loses.
    pub interrupt: Time,
    /// From the moment when the other processor takes the interrupt until the one that asked sees
    /// its acknowledgement. The interrupt can last longer.
    pub acknowledgement: Time,
}

/// A processor: the time that it takes for what it computes between two accesses.
///
/// The number of instructions before an access is that of this project's code, counted on a
/// processor of today. `stanchion-machine` has the table. [`compiler`](Self::compiler) converts it
/// to the number that the machine's own compiler and processor would need.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// A cycle of its clock.
    pub cycle: Time,
    /// Cycles of an instruction, on the average, without waiting for shared memory.
    pub cycles_per_instruction: f64,
    /// The instructions that the machine's own compiler and instruction set need for one of ours.
    /// It is the only figure of a processor that is fitted, and only to times of one processor.
    ///
    /// `None` if it has not been fitted. Instructions then take no time. Times of such a machine
    /// were derived from the times of whole operations, and contain instructions already:
    /// [`machines`](crate::machines) lists them.
    pub compiler: Option<f64>,
}

impl Processor {
    /// Returns the time of an instruction as the machine's own compiler counts them.
    #[must_use]
    pub fn own_instruction(&self) -> Time {
        let picos = self.cycle.as_picos() as f64 * self.cycles_per_instruction;
        Time::picos(picos.round() as u64)
    }

    /// Returns the time that an instruction of our code takes: none if
    /// [`compiler`](Self::compiler) is `None`.
    ///
    /// ```
    /// use stanchion_simulator::{Time, machines};
    /// let processor = machines::challenge().processor;
    /// assert!(processor.instruction() > processor.own_instruction());
    /// assert_eq!(machines::firefly().processor.instruction(), Time::ZERO);
    /// ```
    #[must_use]
    pub fn instruction(&self) -> Time {
        let own = self.own_instruction().as_picos() as f64;
        Time::picos((own * self.compiler.unwrap_or(0.0)).round() as u64)
    }
}

/// A memory system and its times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Caches that write through to memory and invalidate one another over one bus: Symmetry Model
    /// A.
    WriteThrough(WriteThrough),
    /// Caches that own the lines that they write (MESI), over one bus: Symmetry Model B, Challenge.
    WriteBack(WriteBack),
    /// Caches that are updated by the writes of others, over one bus: Firefly.
    Update(Update),
    /// No caches for shared words; each is at home at one processor: Makbilan.
    Uncached(Uncached),
    /// Caches that own the lines that they write, lines at home in a directory, processors in
    /// sockets: servers of today.
    Directory(Directory),
}

/// The times of [`Memory::WriteThrough`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteThrough {
    /// Bytes of a cache line.
    pub line: usize,
    /// Reading a word that is in the cache.
    pub hit: Time,
    /// Reading one that is not, on an idle bus, from the processor's view.
    pub miss: Time,
    /// The time that such a miss occupies the bus.
    pub miss_bus: Time,
    /// Writing a word, on an idle bus; the processor waits until its write is on the bus.
    pub write: Time,
    /// The time that a write occupies the bus.
    pub write_bus: Time,
    /// An atomic read-modify-write, on an idle bus.
    pub exchange: Time,
    /// The time that it occupies the bus, and keeps its location locked.
    pub exchange_bus: Time,
}

/// The times of [`Memory::WriteBack`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBack {
    /// Bytes of a cache line.
    pub line: usize,
    /// Reading or writing a word in the cache.
    pub hit: Time,
    /// The time of an atomic read-modify-write for the processor beyond a write. Its line is free
    /// before that.
    pub exchange: Time,
    /// Fetching a line from memory, on an idle bus.
    pub miss: Time,
    /// The time that it occupies the bus.
    pub miss_bus: Time,
    /// Fetching a line that another cache has written, on an idle bus.
    pub transfer: Time,
    /// The time that it occupies the bus.
    pub transfer_bus: Time,
    /// Invalidating the copies of others, to write a line that is here already.
    pub upgrade: Time,
    /// The time that it occupies the bus.
    pub upgrade_bus: Time,
}

/// The times of [`Memory::Update`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// Bytes of a cache line.
    pub line: usize,
    /// Reading a word in the cache, or writing one that no other cache has.
    pub hit: Time,
    /// The time of an atomic read-modify-write for the processor beyond a write. Its line is free
    /// before that.
    pub exchange: Time,
    /// Fetching a line, on an idle bus.
    pub miss: Time,
    /// The time that it occupies the bus.
    pub miss_bus: Time,
    /// Writing a word that other caches have, which are updated, on an idle bus.
    pub write: Time,
    /// The time that it occupies the bus.
    pub write_bus: Time,
}

/// The times of [`Memory::Uncached`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uncached {
    /// Bytes that have the same home.
    pub line: usize,
    /// An access to a word at home here, with no other access under way.
    pub local: Time,
    /// An access to a word at home elsewhere.
    pub remote: Time,
    /// The time that such an access occupies the bus.
    pub bus: Time,
    /// The time that any access occupies the memory of its home.
    pub module: Time,
    /// The time of an atomic read-modify-write beyond that, all of it at the home's memory.
    pub exchange: Time,
}

/// The times of [`Memory::Directory`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directory {
    /// Bytes of a cache line.
    pub line: usize,
    /// Sockets; processors are divided among them evenly.
    pub sockets: usize,
    /// Reading or writing a word in the processor's own cache.
    pub hit: Time,
    /// The time of an atomic read-modify-write for the processor beyond a write. Its line is free
    /// before that.
    pub exchange: Time,
    /// Fetching a line that several processors have to read, or that no processor has, from the
    /// socket's shared cache or memory.
    pub memory: Time,
    /// Fetching a line that a processor of the same socket has alone.
    pub near: Time,
    /// Fetching a line that a processor of another socket has alone.
    pub far: Time,
    /// Invalidating the copies of others on the same socket, to write a line that is here already.
    pub upgrade: Time,
    /// The same with copies on another socket.
    pub far_upgrade: Time,
    /// Set if a read of a line that its owner has written takes the line away from the owner, so
    /// that the reader can write it without asking ("migratory" lines: a processor that reads
    /// another's write mostly writes next). A line that its owner has only read is shared as on
    /// other machines.
    pub migrates: bool,
    /// The time that a fetch that only adds a copy occupies its line. A fetch that moves the line
    /// occupies it until it arrives.
    pub line_busy: Time,
    /// The time that a request across sockets occupies the link between them.
    pub link_busy: Time,
}

/// The order in which threads run, and its costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduling {
    /// The time that a thread runs when others are ready.
    pub quantum: Time,
    /// Taking one thread off a processor and putting another on.
    pub switch: Time,
    /// The time that a thread spends on going to sleep, before its processor is free. Half of the
    /// papers' C.
    pub park: Time,
    /// The time that a thread spends on waking another.
    pub wake: Time,
    /// The time that it spends beyond that if the woken thread finds an idle processor. That needs
    /// an interrupt, which is dear in virtual machines.
    pub kick: Time,
    /// From there until the woken thread can run. With `park` and a switch, the papers' C.
    pub wakeup: Time,
    /// The time that a thread spends on making another.
    pub spawn: Time,
    /// The number of applications that share the processors, this one among them: each processor
    /// runs the others for so many quanta less one after each of this application's.
    pub applications: usize,
    /// For how long beyond its slice a thread stays that has asked not to be preempted; see
    /// [`os::keep`](crate::os::keep).
    pub grace: Time,
    /// From a processor's broadcast until the others take the interrupt; see
    /// [`os::gang`](crate::os::gang).
    pub interrupt: Time,
    /// By how much some of them take it later than others, at most.
    pub skew: Time,
    /// Telling a program of an event that concerns its processors, until it can do something about
    /// it; see [`os::activations`](crate::os::activations).
    pub upcall: Time,
}

/// The causes that make a real machine's times differ from one access to the next.
///
/// The seed of a run decides all of it: the same build gives the same times on every computer,
/// and another seed gives other ones. Without jitter, processors that run the same loop keep their
/// order for ever, and one of them may never find a lock free.
///
/// | source | delays |
/// | --- | --- |
/// | arbitration | each transaction, by a random time, which may be negative; an exchange twice |
/// | refresh | each transaction that would begin while the memory is refreshed |
/// | clock interrupts | the code on a processor when its interrupt comes |
///
/// The times of a [`Memory`] are averages over the arbitration. Refresh and interrupts come on top.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jitter {
    /// By how much at most a transaction takes longer or shorter than its time. The clocks of
    /// processor and bus are not in step, so a request and its answer each wait for the next cycle.
    pub arbitration: Time,
    /// From the beginning of one refresh of the memory to that of the next. 0 if there is none.
    pub refresh_period: Time,
    /// The time of a refresh.
    pub refresh: Time,
    /// From one clock interrupt of a processor to its next one. 0 if there is none. Each
    /// processor's clock has a phase of its own.
    pub tick_period: Time,
    /// The time of its handler.
    pub tick: Time,
}

impl Jitter {
    /// No jitter.
    pub const NONE: Self = Self {
        arbitration: Time::ZERO,
        refresh_period: Time::ZERO,
        refresh: Time::ZERO,
        tick_period: Time::ZERO,
        tick: Time::ZERO,
    };
}

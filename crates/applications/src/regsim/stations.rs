//! The owners of objects, the values of objects, and the lists of objects that are due.
//!
//! There are two kinds of locks, both of the kind under study:
//!
//! - A bucket's lock guards the state of every object of that number, modulo the number of buckets.
//!   It is taken to read an input, write an output, or mark an object as due.
//! - A station's lock, one per thread, guards the objects that the thread owns and the lists of
//!   those that are due. It is taken to put an object on the list of its owner, to take one's list,
//!   or to give an object away.
//!
//! Why buckets and not a lock per object: a lock may be large (an array lock has a cache line per
//! waiter), and the paper counted 150 locks while Regsim ran, those of the operating system
//! included. The number of buckets sets the contention.
//!
//! # Invariants
//!
//! 1. No thread holds two of these locks: they cannot deadlock, in whatever order they are taken.
//! 2. Each object is in the `objects` of exactly one station, and `owner` names it, except inside
//!    [`Stations::give`], which runs while all other threads wait.
//! 3. An object that is `queued` is on one list only: the thread that turned `queued` to true puts
//!    it there. It is served from that list even if it has been given away since.
//! 4. `queued` is cleared *before* the inputs are read. So a writer that finds it set knows that
//!    its new value will be read. A writer that finds it clear puts the object on a list again.
//! 5. The list that is filled in a phase is not the one served in it. By 3 no object is served by
//!    two threads in one phase.

use super::stats::WaitStatistics;
use super::wiring::Wiring;
use crate::pace::{CVAX_INSTRUCTION_NS, Pace, SECTION};
use core::fmt;
use lock_api::{Mutex, RawMutex};
use std::collections::VecDeque;

/// An object, as a number: the net it drives.
pub type Object = u32;

/// Instructions of evaluating a gate, its locks apart: the call through a pointer, the frame, the
/// loop, and as many for each input.
const EVALUATION: u64 = 40;
const INPUT: u64 = 15;

/// Of the loop over an object's readers, for each.
const READER: u64 = 15;

/// The data under a bucket's lock, one per object.
#[derive(Default)]
struct State {
    /// The value of the object's output.
    value: bool,
    /// The value that a flip-flop or an input will show in the next cycle.
    sampled: bool,
    /// Set while the object is on a list (Invariant 3).
    queued: bool,
    /// The number of the thread that owns it.
    owner: u32,
}

/// The data under a station's lock.
#[derive(Debug, Default)]
struct Station {
    /// The objects that the thread owns.
    objects: VecDeque<Object>,
    /// Gates to be evaluated, one list for even phases and one for odd ones.
    due: [Vec<Object>; 2],
    /// Flip-flops whose input has changed, and all inputs: to be clocked at the end of the cycle.
    clocked: Vec<Object>,
}

/// A line of its own: neighbours in an array of locks must not slow each other down.
#[repr(align(128))]
struct Apart<T>(T);

/// All objects and all threads' lists.
pub struct Stations<L> {
    /// The connections of the circuit.
    wiring: Wiring,
    /// The states of the objects, each under its bucket's lock.
    buckets: Vec<Apart<Mutex<L, Box<[State]>>>>,
    /// The stations of the threads.
    stations: Vec<Apart<Mutex<L, Station>>>,
    /// The pace of a simulated machine.
    pace: Pace,
}

impl<L> fmt::Debug for Stations<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stations")
            .field("objects", &self.wiring.len())
            .field("buckets", &self.buckets.len())
            .field("stations", &self.stations.len())
            .finish()
    }
}

impl<L: RawMutex> Stations<L> {
    /// The circuit at power-up, its objects divided evenly among `threads`: runs of neighbours in
    /// the file, as many for each. All gates are due in phase 0, all inputs and flip-flops at the
    /// end of the first cycle.
    ///
    /// # Panics
    ///
    /// If `threads` or `buckets` is 0.
    pub fn new(
        wiring: Wiring,
        threads: usize,
        buckets: usize,
        input: impl Fn(u32) -> bool,
    ) -> Self {
        Self::with_locks(wiring, threads, buckets, input, &|_| L::INIT)
    }

    /// Returns the same with locks from `make`. It gets their names: `bucket 12`, `list 3`.
    ///
    /// # Panics
    ///
    /// If `threads` or `buckets` is 0.
    pub fn with_locks(
        wiring: Wiring,
        threads: usize,
        buckets: usize,
        input: impl Fn(u32) -> bool,
        make: &dyn Fn(&str) -> L,
    ) -> Self {
        let objects = wiring.len();
        let mut states: Vec<Vec<State>> = (0..buckets).map(|_| Vec::new()).collect();
        let mut stations: Vec<Station> = (0..threads).map(|_| Station::default()).collect();
        for object in 0..objects {
            let owner = object * threads / objects;
            let station = &mut stations[owner];
            let id = object as Object;
            station.objects.push_back(id);
            let list =
                if wiring.is_clocked(id) { &mut station.clocked } else { &mut station.due[0] };
            list.push(id);
            let value = wiring.input_number(id).is_some_and(&input);
            let state = State { value, sampled: value, queued: true, owner: owner as u32 };
            states[object % buckets].push(state);
        }
        let bucket = |(number, states): (usize, Vec<State>)| {
            Apart(Mutex::from_raw(make(&format!("bucket {number}")), states.into_boxed_slice()))
        };
        let list = |(thread, station): (usize, Station)| {
            Apart(Mutex::from_raw(make(&format!("list {thread}")), station))
        };
        Self {
            wiring,
            buckets: states.into_iter().enumerate().map(bucket).collect(),
            stations: stations.into_iter().enumerate().map(list).collect(),
            pace: Pace::new(CVAX_INSTRUCTION_NS),
        }
    }

    /// The same on a simulated machine that takes `instruction_ns` nanoseconds for an instruction
    /// instead of [`CVAX_INSTRUCTION_NS`].
    #[must_use]
    pub fn at_pace(self, instruction_ns: u64) -> Self {
        Self { pace: Pace::new(instruction_ns), ..self }
    }

    /// The circuit.
    pub fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    /// The value of `object` now.
    #[inline]
    pub fn value(&self, object: Object, waits: &mut WaitStatistics) -> bool {
        self.state(object, waits, |state| state.value)
    }

    /// Evaluates a gate from `due` in a phase of `parity`, and puts those it moves on the lists of
    /// the next phase. Returns how many gates are due by that.
    pub fn evaluate(&self, object: Object, parity: usize, waits: &mut WaitStatistics) -> usize {
        let Some(gate) = self.wiring.gate(object) else { return 0 };
        self.state(object, waits, |state| state.queued = false);
        self.pace.compute(EVALUATION);
        let inputs = self.wiring.reads(object).iter();
        let value = gate.evaluate(inputs.map(|&input| {
            self.pace.compute(INPUT);
            self.value(input, waits)
        }));
        self.show(object, value, 1 - parity, waits)
    }

    /// At the end of a cycle: notes what a flip-flop or input will show in the next one.
    pub fn sample(&self, object: Object, input: impl Fn(u32) -> bool, waits: &mut WaitStatistics) {
        self.pace.compute(EVALUATION);
        let number = self.wiring.input_number(object);
        // An input asks again every cycle, so it stays queued and goes back to the list in `drive`.
        self.state(object, waits, |state| state.queued = number.is_some());
        let sampled = match number {
            Some(number) => input(number),
            None => self.value(self.wiring.reads(object)[0], waits),
        };
        self.state(object, waits, |state| state.sampled = sampled);
    }

    /// At the beginning of the next: shows it, and puts the gates it moves on the lists of
    /// `parity`. Returns how many.
    pub fn drive(&self, object: Object, parity: usize, waits: &mut WaitStatistics) -> usize {
        let (sampled, owner) = self.state(object, waits, |state| (state.sampled, state.owner));
        if self.wiring.input_number(object).is_some() {
            self.station(owner, waits, |station| station.clocked.push(object));
        }
        self.show(object, sampled, parity, waits)
    }

    /// Gives `object` a value and, if that is another than before, puts its readers on the lists of
    /// their owners. Returns how many gates were put there.
    fn show(
        &self,
        object: Object,
        value: bool,
        parity: usize,
        waits: &mut WaitStatistics,
    ) -> usize {
        let before = self.state(object, waits, |state| core::mem::replace(&mut state.value, value));
        if before == value {
            return 0;
        }
        let mut gates = 0;
        for &reader in self.wiring.readers(object) {
            self.pace.compute(READER);
            let owner = self.state(reader, waits, |state| {
                (!core::mem::replace(&mut state.queued, true)).then_some(state.owner)
            });
            let Some(owner) = owner else { continue };
            let clocked = self.wiring.is_clocked(reader);
            gates += usize::from(!clocked);
            self.station(owner, waits, |station| {
                let list = if clocked { &mut station.clocked } else { &mut station.due[parity] };
                list.push(reader);
            });
        }
        gates
    }

    /// Takes the gates that thread `thread` has to evaluate in a phase of `parity`, in exchange for
    /// an empty list.
    pub fn take_due(
        &self,
        thread: usize,
        parity: usize,
        list: &mut Vec<Object>,
        waits: &mut WaitStatistics,
    ) {
        list.clear();
        self.station(thread as u32, waits, |station| {
            core::mem::swap(&mut station.due[parity], list)
        });
    }

    /// Takes the flip-flops and inputs that thread `thread` has to clock, in exchange for an empty
    /// list.
    pub fn take_clocked(&self, thread: usize, list: &mut Vec<Object>, waits: &mut WaitStatistics) {
        list.clear();
        self.station(thread as u32, waits, |station| core::mem::swap(&mut station.clocked, list));
    }

    /// Station `from` gives the object it has had longest to station `to`, unless it is the only
    /// one it has. Only for the thread that has the [barrier](crate::barrier) to itself.
    pub fn give(&self, from: usize, to: usize, waits: &mut WaitStatistics) -> Option<Object> {
        if from == to {
            return None;
        }
        let object = self.station(from as u32, waits, |station| {
            if station.objects.len() > 1 { station.objects.pop_front() } else { None }
        })?;
        self.state(object, waits, |state| state.owner = to as u32);
        self.station(to as u32, waits, |station| station.objects.push_back(object));
        Some(object)
    }

    /// Every station's objects.
    pub fn owned(&self, waits: &mut WaitStatistics) -> Vec<Vec<Object>> {
        (0..self.stations.len() as u32)
            .map(|thread| {
                self.station(thread, waits, |station| station.objects.iter().copied().collect())
            })
            .collect()
    }

    /// The owner of `object`, as its bucket says.
    pub fn owner(&self, object: Object, waits: &mut WaitStatistics) -> usize {
        self.state(object, waits, |state| state.owner as usize)
    }

    #[inline]
    fn state<R>(
        &self,
        object: Object,
        waits: &mut WaitStatistics,
        access: impl FnOnce(&mut State) -> R,
    ) -> R {
        let (bucket, slot) =
            (object as usize % self.buckets.len(), object as usize / self.buckets.len());
        let mut states = waits.objects.lock(&self.buckets[bucket].0);
        stanchion_machine::write(&states[slot]);
        self.pace.compute(SECTION);
        access(&mut states[slot])
    }

    #[inline]
    fn station<R>(
        &self,
        thread: u32,
        waits: &mut WaitStatistics,
        access: impl FnOnce(&mut Station) -> R,
    ) -> R {
        let mut station = waits.lists.lock(&self.stations[thread as usize].0);
        // For any of the lists, its length and its end.
        stanchion_machine::write(&station.clocked);
        self.pace.compute(SECTION);
        access(&mut station)
    }
}

//! The ranks of a job, and how they exchange values.
//!
//! # Invariants
//!
//! 1. Every operation begins with an exchange of headers (an MPI allgather). So all ranks exchange
//!    them equally often, whatever each of them does.
//! 2. A rank goes on after that only if all are about to do the same with the same type. Else each
//!    of them returns or panics, and so comes to [`Ranks::leave`]. No rank is left in a collective
//!    in which others take no part.
//! 3. [`Ranks::leave`] exchanges headers until all ranks leave. A member that is used afterwards
//!    exchanges nothing. (That takes a `mem::swap` with another member.)
//! 4. MPI is finalized when the last value that could call it is dropped.

use std::cell::Cell;

use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::topology::{Process, SimpleCommunicator};
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Root, Source};
use mpi::{Count, Rank};

use super::header::{BYTES, Header, Operation, SMALL, number_of};
use crate::data::Data;
use crate::error::Ended;
use crate::member::exchanged::Exchanged;

pub(crate) struct Ranks {
    /// All ranks of the job.
    world: SimpleCommunicator,
    /// True if this rank has left.
    has_left: Cell<bool>,
    // Last: finalizes MPI (Invariant 4).
    _universe: Universe,
}

fn bytes_of<T: Data>(values: &[T]) -> &[u8] {
    let length = size_of_val(values);
    // SAFETY: they are `Data`: all of their bytes are initialized.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), length) }
}

/// Returns `number` values from their bytes.
///
/// # Safety
///
/// The bytes are those of `number` values of this type, of a process of the same program.
unsafe fn values_of<T: Data>(number: usize, bytes: &[u8]) -> Vec<T> {
    assert_eq!(bytes.len(), number * size_of::<T>(), "as many bytes as the values have");
    let first = bytes.as_ptr().cast::<T>();
    let value = |at| {
        // SAFETY: within the bytes, as was checked above.
        let value = unsafe { first.add(at) };
        // SAFETY: as the caller promises. It holds no pointer, so it means the same here.
        unsafe { value.read_unaligned() }
    };
    (0..number).map(value).collect()
}

/// Returns the number as MPI counts.
fn count(bytes: usize) -> Count {
    Count::try_from(bytes).unwrap_or_else(|_| {
        panic!("{bytes} bytes in one MPI operation: at most {} can be handed over", Count::MAX)
    })
}

/// Returns the length and the beginning of each part.
fn laid_out(lengths: impl Iterator<Item = usize>) -> (Vec<Count>, Vec<Count>) {
    let mut end = 0;
    let part = |length| {
        let begin = end;
        end += length;
        // MPI can count to the end, so it can to the others.
        (count(end) - count(begin), count(begin))
    };
    lengths.map(part).unzip()
}

impl Ranks {
    pub(crate) fn new(universe: Universe) -> Self {
        Self { world: universe.world(), has_left: Cell::new(false), _universe: universe }
    }

    pub(crate) fn index(&self) -> usize {
        usize::try_from(self.world.rank()).expect("ranks are not negative")
    }

    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.world.size()).expect("a number of ranks")
    }

    fn all_headers(&self, mine: &Header) -> Vec<Header> {
        let mut all = vec![0; BYTES * self.len()];
        self.world.all_gather_into(&mine.bytes()[..], &mut all[..]);
        all.chunks_exact(BYTES).map(Header::of_bytes).collect()
    }

    /// Exchanges headers with the other ranks before an operation.
    ///
    /// # Panics
    ///
    /// If a rank is about to do something else.
    fn exchange_headers(&self, mine: Header) -> Result<Vec<Header>, Ended> {
        if self.has_left.get() {
            return Err(Ended::Left { member: self.index() });
        }
        let all = self.all_headers(&mine);
        for (member, header) in all.iter().enumerate() {
            match header.what {
                Operation::Left => return Err(Ended::Left { member }),
                Operation::Panicked => return Err(Ended::Panicked { member }),
                _ => {}
            }
        }
        for (member, header) in all.iter().enumerate() {
            assert!(
                (header.what, header.of) == (mine.what, mine.of),
                "member {member} is at {:?} and this one at {:?}, or of another type: all members of a gang must call the same operations in the same order",
                header.what,
                mine.what
            );
        }
        Ok(all)
    }

    /// Tells the others that this rank has left, until all have.
    pub(crate) fn leave(&self, why: Ended) {
        let what = if matches!(why, Ended::Panicked { .. }) {
            Operation::Panicked
        } else {
            Operation::Left
        };
        let mine = Header::bare(what);
        let has_left =
            |header: &Header| matches!(header.what, Operation::Left | Operation::Panicked);
        while !self.all_headers(&mine).iter().all(has_left) {}
        self.has_left.set(true);
    }

    pub(crate) fn barrier(&self) -> Result<(), Ended> {
        self.exchange_headers(Header::bare(Operation::Barrier)).map(drop)
    }

    pub(crate) fn broadcast<T: Data>(&self, root: usize, value: T) -> Result<T, Ended> {
        Ok(self.values(value)?[root])
    }

    /// Returns the folded values for member `root`, or for all.
    pub(crate) fn reduce<T: Data>(
        &self,
        root: Option<usize>,
        value: T,
        op: impl Fn(T, T) -> T,
    ) -> Result<Option<T>, Ended> {
        let values = self.values(value)?.into_iter();
        Ok(self.is_for(root).then(|| values.reduce(op)).flatten())
    }

    /// Returns the values of all for member `root`, or for all.
    pub(crate) fn gather<T: Data>(
        &self,
        root: Option<usize>,
        value: T,
    ) -> Result<Option<Vec<T>>, Ended> {
        let values = self.values(value)?;
        Ok(self.is_for(root).then_some(values))
    }

    fn is_for(&self, root: Option<usize>) -> bool {
        root.is_none_or(|root| root == self.index())
    }

    /// Returns the values of all, by index.
    fn values<T: Data>(&self, value: T) -> Result<Vec<T>, Ended> {
        let value = [value];
        let bytes = bytes_of(&value);
        let headers =
            self.exchange_headers(Header::new(Operation::Value, number_of::<T>(0), 1, bytes))?;
        let length = bytes.len();
        let all = if length <= SMALL {
            headers.iter().flat_map(|header| header.small[..length].to_vec()).collect()
        } else {
            let mut all = vec![0; length * self.len()];
            count(all.len());
            self.world.all_gather_into(bytes, &mut all[..]);
            all
        };
        // SAFETY: the headers say that all are of this type.
        Ok(unsafe { values_of(self.len(), &all) })
    }

    /// Returns the lists of all, by index, to member `root`.
    pub(crate) fn gather_lists<T: Data>(
        &self,
        root: usize,
        list: Vec<T>,
    ) -> Result<Option<Vec<Vec<T>>>, Ended> {
        let bytes = bytes_of(&list);
        let header = Header::new(Operation::Lists, number_of::<T>(root), list.len(), bytes);
        let numbers: Vec<usize> =
            self.exchange_headers(header)?.iter().map(Header::number).collect();
        let (counts, begins) = laid_out(numbers.iter().map(|number| number * size_of::<T>()));
        let process = self.process(root);
        if self.index() != root {
            process.gather_varcount_into(bytes);
            return Ok(None);
        }
        // One more, because some MPI libraries refuse two empty buffers as the same buffer.
        let mut all = vec![0_u8; numbers.iter().sum::<usize>() * size_of::<T>() + 1];
        let mut parts = PartitionMut::new(&mut all[..], &counts[..], &begins[..]);
        process.gather_varcount_into_root(bytes, &mut parts);
        let mut rest = &all[..];
        let part = |number: usize| {
            let (mine, others) = rest.split_at(number * size_of::<T>());
            rest = others;
            // SAFETY: the headers say that they are so many of this type.
            unsafe { values_of(number, mine) }
        };
        Ok(Some(numbers.into_iter().map(part).collect()))
    }

    /// Returns one of the values of member `root`, which gives one for each member.
    pub(crate) fn scatter<T: Data>(&self, root: usize, values: Vec<T>) -> Result<T, Ended> {
        // All ranks find it too large, or none does.
        count(self.len() * size_of::<T>());
        self.exchange_headers(Header::new(Operation::Scatter, number_of::<T>(root), 1, &[]))?;
        let mut mine = vec![0_u8; size_of::<T>()];
        let process = self.process(root);
        if self.index() == root {
            process.scatter_into_root(bytes_of(&values), &mut mine[..]);
        } else {
            process.scatter_into(&mut mine[..]);
        }
        // SAFETY: the headers say that they are of this type.
        let one = unsafe { values_of(1, &mine) };
        Ok(one[0])
    }

    /// Hands `to_previous` to the previous member and `to_next` to the next one, and returns what
    /// they hand to this one.
    pub(crate) fn exchange_with_neighbours<T: Data>(
        &self,
        to_previous: &[T],
        to_next: &[T],
    ) -> Result<Exchanged<T>, Ended> {
        let number = to_previous.len();
        let header = Header::new(Operation::Neighbours, number_of::<T>(0), number, &[]);
        for (member, other) in self.exchange_headers(header)?.iter().enumerate() {
            assert!(
                other.number() == number,
                "member {member} hands over {} values and this one {number}: as many must go to each neighbour",
                other.number()
            );
        }
        let me = self.index();
        let previous = me.checked_sub(1);
        let next = Some(me + 1).filter(|&next| next < self.len());
        let bytes = size_of_val(to_previous);
        count(bytes);
        let (mut from_previous, mut from_next) = (vec![0_u8; bytes], vec![0_u8; bytes]);
        mpi::request::scope(|scope| {
            let send = |to: Option<usize>, list| {
                to.map(|to| self.process(to).immediate_send(scope, bytes_of(list)))
            };
            let sent = [send(previous, to_previous), send(next, to_next)];
            for (from, list) in [(previous, &mut from_previous), (next, &mut from_next)] {
                if let Some(from) = from {
                    self.process(from).receive_into(&mut list[..]);
                }
            }
            for request in sent.into_iter().flatten() {
                request.wait();
            }
        });
        // SAFETY: the headers say that they are so many of this type.
        let values = |bytes: &[u8]| unsafe { values_of(number, bytes) };
        Ok((previous.map(|_| values(&from_previous)), next.map(|_| values(&from_next))))
    }

    fn process(&self, member: usize) -> Process<'_> {
        let rank = Rank::try_from(member).expect("as many as there are ranks");
        self.world.process_at_rank(rank)
    }
}

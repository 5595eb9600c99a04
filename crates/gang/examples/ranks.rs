//! A test of a gang of the ranks of an MPI job: every operation, and every way in which a member
//! can fail the others.
//!
//! ```text
//! cargo build -p stanchion-gang --features mpi --example ranks
//! mpirun --oversubscribe -n 3 target/debug/examples/ranks all
//! ```
//!
//! The argument says what member 1 does, and what the others must see:
//!
//! - `all`: it does every operation, and all see the same as in a gang of threads.
//! - `returns`: it returns early. The others see that it has left.
//! - `leaves`: it returns an error. The others see that it has left.
//! - `panics`: it panics. The others see that it has panicked.
//! - `differs`: it calls another operation. All panic.
//! - `exchanged`: each rank takes the member out of `run`, and uses it when the job is over. It
//!   sees that the job is over.
//!
//! Exit code 0: each rank has seen what it must see.

use stanchion_gang::mpi::{self, MpiError};
use stanchion_gang::{Ended, GangError, GangExecutor, Member};

/// Does each operation with small and large values, and returns their sum.
fn all(member: &mut Member) -> Result<u64, Ended> {
    let (me, len) = (member.index() as u64, member.len() as u64);
    let last = member.len() - 1;
    member.checkpoint()?;
    member.barrier()?;
    let mut sum = member.broadcast(last, me + 5)?;
    assert_eq!(sum, len + 4);
    let large = member.broadcast(0, [me as u32 + 7; 40])?;
    assert_eq!(large, [7; 40]);
    // Neither commutative nor associative: the order of the indices counts.
    let op = |a: u64, b: u64| a.wrapping_mul(31).wrapping_sub(b);
    let folded = (1..len).fold(0, op);
    assert_eq!(member.all_reduce(me, op)?, folded);
    let reduced = member.reduce(last, me, op)?;
    assert_eq!(reduced, (me == len - 1).then_some(folded));
    sum = sum.wrapping_add(folded);
    let squares: Vec<u64> = (0..len).map(|index| index * index).collect();
    assert_eq!(member.all_gather(me * me)?, squares);
    assert_eq!(member.gather(0, me * me)?, (me == 0).then_some(squares));
    assert_eq!(member.all_gather([me as u8; 100])?[last], [last as u8; 100]);
    assert_eq!(member.all_gather(())?.len() as u64, len);
    let lists = member.gather_lists(0, vec![me; me as usize])?;
    let expected: Vec<_> = (0..len).map(|index| vec![index; index as usize]).collect();
    assert_eq!(lists, (me == 0).then_some(expected));
    let dealt = (me == 0).then(|| (0..len).map(|index| [index; 20]).collect());
    assert_eq!(member.scatter(0, dealt)?, [me; 20]);
    let (to_previous, to_next) = ([me as f64; 300], [-(me as f64); 300]);
    let (previous, next) = member.exchange_with_neighbours(&to_previous, &to_next)?;
    assert_eq!(previous, (me > 0).then(|| vec![-(me as f64 - 1.0); 300]));
    assert_eq!(next, (me + 1 < len).then(|| vec![me as f64 + 1.0; 300]));
    assert!((member.processor() as u64) < len);
    Ok(member.blocking(|| sum))
}

fn both() -> Result<(), Box<dyn std::error::Error>> {
    let mut ranks = 0;
    let sum = mpi::run(|member| {
        ranks = member.len();
        all(member)
    })?;
    let threads = GangExecutor::new(ranks)?.spawn(ranks, all)?.join()?;
    assert_eq!(threads, vec![sum; ranks]);
    assert!(matches!(mpi::run(|member| member.barrier()), Err(MpiError::Initialized)));
    Ok(())
}

/// Lets member 1 fail as `how` says, after a barrier that all cross.
fn failing(how: &str) {
    let mut me = 0;
    let ended = mpi::run(|member| {
        me = member.index();
        assert!(member.len() > 1, "start at least two ranks");
        member.barrier()?;
        if me == 1 {
            match how {
                "returns" => return Ok(()),
                "leaves" => return Err(member.leave()),
                "panics" => panic!("on purpose"),
                "differs" => member.all_gather(1_u8).map(drop)?,
                other => panic!("there is no `{other}`"),
            }
        }
        let met = member.barrier();
        let expected = match how {
            "panics" => Ended::Panicked { member: 1 },
            _ => Ended::Left { member: 1 },
        };
        assert_eq!(met, Err(expected));
        met
    });
    let as_expected = match (how, me, &ended) {
        ("returns", 1, Ok(())) => true,
        ("panics", 1, Err(MpiError::Gang(GangError::Panicked { member, .. }))) => *member == 1,
        ("differs", _, Err(MpiError::Gang(GangError::Panicked { member, .. }))) => *member == me,
        (_, _, Err(MpiError::Gang(GangError::Left { member }))) => *member == 1,
        _ => false,
    };
    assert!(as_expected, "{how}: member {me} got {ended:?}");
}

/// Safe code can keep a rank's member longer than the job, by exchanging it for the member of
/// another gang.
fn exchanged() -> Result<(), Box<dyn std::error::Error>> {
    let gang = GangExecutor::new(1)?.spawn(1, |outer: &mut Member| {
        let met = mpi::run(|member| {
            member.barrier()?;
            std::mem::swap(member, outer);
            Ok(())
        });
        assert!(met.is_ok(), "{met:?}");
        let me = outer.index();
        assert_eq!(outer.barrier(), Err(Ended::Left { member: me }));
        Ok(())
    })?;
    gang.join()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("all") => both(),
        Some("exchanged") => exchanged(),
        Some(how) => {
            failing(how);
            Ok(())
        }
        None => Err("say what: all, returns, leaves, panics, differs or exchanged".into()),
    }
}

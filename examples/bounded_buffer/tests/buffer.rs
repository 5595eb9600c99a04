//! The buffer's tests: real runs by default, every interleaving under `--cfg stanchion_loom`,
//! virtual time under `--cfg stanchion_simulated`.

use std::borrow::Borrow;

use bounded_buffer::{Apart, Buffer, End, Near};
use stanchion::machine::sync::Arc;
use stanchion::machine::{Explored, Model, thread};

fn in_order<E: Borrow<End> + Default + Send + Sync + 'static>() -> Explored {
    Model::new().preemptions(3).check(|| {
        let buffer = Arc::new(Buffer::<u32, 1, E>::new());
        let other = {
            let buffer = buffer.clone();
            thread::spawn(move || (0..2).for_each(|entry| buffer.put(entry)))
        };
        assert_eq!((buffer.take(), buffer.take()), (0, 1));
        other.join().unwrap();
    })
}

#[test]
fn entries_come_out_in_the_order_in_which_they_went_in() {
    println!("model entries_near: {}", in_order::<Near>());
    println!("model entries_apart: {}", in_order::<Apart>());
}

#[test]
fn two_that_put_lose_nothing() {
    let explored = Model::new().preemptions(2).check(|| {
        let buffer = Arc::new(Buffer::<u32, 2>::new());
        let other = {
            let buffer = buffer.clone();
            thread::spawn(move || buffer.put(1))
        };
        buffer.put(2);
        other.join().unwrap();
        assert_eq!(buffer.take() + buffer.take(), 3);
    });
    println!("model two_that_put_lose_nothing: {explored}");
}

/// The claims of the example hold: the numbers are the same on every computer, so they can be
/// tested.
#[cfg(stanchion_simulated)]
mod simulated {
    use super::*;
    use bounded_buffer::simulation::{WORK, simulate};
    use stanchion::simulator::Arena;

    #[global_allocator]
    static ARENA: Arena = Arena;

    #[test]
    fn eight_processors_do_not_mind_and_sixteen_do() {
        let (near, apart) = (simulate::<Near>(8).unwrap(), simulate::<Apart>(8).unwrap());
        assert!(near.result < apart.result * 1.05, "{} {}", near.result, apart.result);
        let (near_16, apart_16) = (simulate::<Near>(16).unwrap(), simulate::<Apart>(16).unwrap());
        assert!(near_16.result > near.result, "{} {}", near_16.result, near.result);
        assert!(near_16.result > apart_16.result * 1.9, "{} {}", near_16.result, apart_16.result);
        assert!(apart_16.result < WORK as f64 / 8.0 * 1.6, "{}", apart_16.result);
    }

    #[test]
    fn the_statistics_name_the_words_that_share_a_line() {
        let (near, apart) = (simulate::<Near>(16).unwrap(), simulate::<Apart>(16).unwrap());
        let shares = |run: &stanchion::simulator::Run<f64>| {
            run.statistics.word("put.turn").unwrap().shares_line_with.clone()
        };
        assert!(shares(&near).iter().any(|name| name == "take.turn"));
        assert_eq!(shares(&apart), ["put.passed"]);
        assert!(near.timeline.unwrap().drawing(&near.statistics).to_string().contains("puts 7"));
    }
}

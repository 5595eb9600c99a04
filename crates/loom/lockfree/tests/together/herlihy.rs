//! Models of Herlihy's methodology: an object that is copied whole.
//!
//! Each model, its threads, and its bound:
//!
//! - `an_update_meets_a_read`: 2; no bound.
//! - `an_update_meets_a_read_bounded`: 2, two updates, so that the block which is read is used
//!   again; 2 preemptions.
//! - `two_update_bounded`: 2; 2 preemptions.
//! - `three_update_bounded`: 3; 1 preemption.
//!
//! Two updates without a bound were seen to have more than 145,000 executions: each looks again at
//! the block that it has copied, after each step of the other.
//!
//! Blocks are checked cells: one that is written while it is read is reported. Every model prints
//! `model NAME: N executions`.

use stanchion_lockfree_loom::Herlihy;
use stanchion_machine::Model;
use stanchion_machine::sync::Arc;
use stanchion_models::beside;

/// Checks `body`, and prints the number of executions.
fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.objects(40).check(body));
}

fn add(object: &Herlihy<(u32, u32)>) {
    object.update(|both| *both = (both.0 + 1, both.1 + 1));
}

#[test]
fn an_update_meets_a_read_bounded() {
    explore("herlihy::an_update_meets_a_read_bounded", Model::new().preemptions(2), || {
        let object = Arc::new(Herlihy::new((0, 0)));
        let other = beside(&object, |object| {
            add(object);
            add(object);
        });
        object.read(|both| assert_eq!(both.0, both.1));
        other.join().unwrap();
        assert_eq!(object.get(), (2, 2));
    });
}

#[test]
fn two_update_bounded() {
    explore("herlihy::two_update_bounded", Model::new().preemptions(2), || {
        let object = Arc::new(Herlihy::new((0, 0)));
        let other = beside(&object, add);
        add(&object);
        other.join().unwrap();
        assert_eq!(object.get(), (2, 2));
    });
}

#[test]
fn three_update_bounded() {
    explore("herlihy::three_update_bounded", Model::new().preemptions(1), || {
        let object = Arc::new(Herlihy::new((0, 0)));
        let others = [beside(&object, add), beside(&object, add)];
        add(&object);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(object.get(), (3, 3));
    });
}

#[test]
fn an_update_meets_a_read() {
    explore("herlihy::an_update_meets_a_read", Model::new(), || {
        let object = Arc::new(Herlihy::new((0, 0)));
        let other = beside(&object, add);
        object.read(|both| assert_eq!(both.0, both.1));
        other.join().unwrap();
        assert_eq!(object.get(), (1, 1));
    });
}

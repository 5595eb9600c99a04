//! Models of the words of a worker's history: a reader has those of one moment.
//!
//! A history has eight words. Two are enough to be of two moments, and each word more has a
//! multiple of executions.

#[path = "../../../../watch/src/sequence.rs"]
mod sequence;

use sequence::Sequence;
use stanchion_machine::Model;
use stanchion_machine::sync::Arc;
use stanchion_models::{beside, explore};

/// Changes both words `changes` times while another thread reads them.
fn changes_beside_a_reader(changes: u64) {
    let words = Arc::new(Sequence::new([0; 2]));
    let reader = beside(&words, |words| {
        if let Some([first, second]) = words.read() {
            assert_eq!(first, second, "words of two moments");
        }
    });
    for number in 1..=changes {
        words.change(|words| {
            assert_eq!(*words, [number - 1; 2], "the writer has its own words");
            *words = [number; 2];
        });
    }
    reader.join().unwrap();
    assert_eq!(words.read(), Some([changes; 2]));
}

/// A writer changes the words once.
#[test]
fn a_reader_has_one_moment() {
    explore("sequence::a_reader_has_one_moment", Model::new(), || changes_beside_a_reader(1));
}

/// A writer changes the words twice: a reader may begin before the first change and end after the
/// second.
#[test]
fn a_reader_has_one_moment_of_three_bounded() {
    let model = Model::new().preemptions(3);
    explore("sequence::a_reader_has_one_moment_of_three_bounded", model, || {
        changes_beside_a_reader(2);
    });
}

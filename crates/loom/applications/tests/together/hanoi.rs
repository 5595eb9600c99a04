//! Models of Hanoi: whole runs, in which a thread that waits for its turn must be woken for it.

use stanchion_applications_loom::hanoi::{self, Options};
use stanchion_machine::Model;
use stanchion_models::{Lock, brief, explore};

/// Two disks, a thread each: the large one waits for the small one to be lifted, the small one for
/// the large one to be lowered.
#[test]
fn two_threads_move_two_disks_bounded() {
    let options = Options {
        disks: 2,
        pegs: 3,
        threads: 2,
        rounds: 1,
        work_ns: 0,
        draw_ns: 0,
        pinned: false,
        ..Options::default()
    };
    let model = brief::bounded(Model::new(), 2, 3);
    explore("hanoi::two_threads_move_two_disks_bounded", model, move || {
        let run = hanoi::run::<Lock>(&options).expect("good options");
        assert_eq!((run.moves, run.fault), (3, None));
    });
}

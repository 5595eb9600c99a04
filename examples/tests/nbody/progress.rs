//! The lines that a long run writes where there is no terminal.

use examples::Progress;
use std::time::Duration;

#[test]
fn a_line_comes_every_ten_seconds_at_most() {
    let progress = Progress::new("hanoi", false, 40, "moves");
    progress.step();
    assert_eq!(progress.line(Duration::from_secs(9)), None);
    let line = |seconds| progress.line(Duration::from_secs(seconds));
    assert_eq!(line(12).as_deref(), Some("hanoi: 1 of 40 moves after 12 s"));
    progress.step();
    assert_eq!(line(21), None);
    assert_eq!(line(22).as_deref(), Some("hanoi: 2 of 40 moves after 22 s"));
}

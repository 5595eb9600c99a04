//! Tests of a program with another allocator than `Arena`.

use stanchion_simulator::Arena;

#[test]
fn arena_is_not_installed_by_itself() {
    assert!(!Arena::is_installed());
    assert!(!Arena::is_installed(), "the answer is kept");
}

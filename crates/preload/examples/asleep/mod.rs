//! Tells whether threads of this process sleep. A program that waits for that need not assume how
//! soon a thread begins to wait.

/// Returns whether the thread of that number sleeps. Beside other load it may take long until it
/// does.
pub(crate) fn sleeps(thread: i32) -> bool {
    look(thread).is_some_and(|(_, state)| state == 'S')
}

/// Returns the name and the state of a thread, or `None` once the thread has ended.
pub(crate) fn look(thread: i32) -> Option<(String, char)> {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    // The name is in parentheses, and may have parentheses in it. The state follows it.
    let (before, after) = stat.rsplit_once(") ")?;
    let (_, name) = before.split_once(" (")?;
    Some((name.to_owned(), after.chars().next()?))
}

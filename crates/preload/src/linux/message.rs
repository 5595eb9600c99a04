//! Messages of the shim, as it starts.

/// Prints a message on standard error, before the program begins.
pub(super) fn say(parts: &[&[u8]]) {
    let mut line = [0; 512];
    let mut length = 0;
    for part in [&[b"stanchion: ".as_slice()], parts, &[b"\n".as_slice()]].into_iter().flatten() {
        let part = &part[..part.len().min(line.len() - length)];
        line[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    // SAFETY: writes bytes of `line`. If that fails, there is no way to report it.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), length) };
}

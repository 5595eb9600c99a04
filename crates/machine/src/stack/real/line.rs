//! A line of text that a signal handler may put together and write: no allocation, no lock, one
//! system call.

/// As much as fits; the rest is lost.
pub(super) struct Line {
    /// Room for the text.
    bytes: [u8; Self::MOST],
    /// The length of the text.
    length: usize,
}

impl Line {
    const MOST: usize = 512;

    pub(super) const fn new() -> Self {
        Self { bytes: [0; Self::MOST], length: 0 }
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        for (place, byte) in self.bytes[self.length..].iter_mut().zip(bytes) {
            *place = *byte;
        }
        self.length = (self.length + bytes.len()).min(Self::MOST);
        self
    }

    pub(super) fn decimal(&mut self, number: usize) -> &mut Self {
        self.digits::<10>(number)
    }

    pub(super) fn hexadecimal(&mut self, number: usize) -> &mut Self {
        self.digits::<16>(number)
    }

    fn digits<const BASE: usize>(&mut self, mut number: usize) -> &mut Self {
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b"0123456789abcdef"[number % BASE];
            number /= BASE;
            if number == 0 {
                return self.bytes(&digits[first..]);
            }
        }
    }

    /// Writes it to standard error. If that fails, for want of a reader say, there is no place to
    /// report it.
    pub(super) fn write(&self) {
        let mut rest = &self.bytes[..self.length];
        while !rest.is_empty() {
            // SAFETY: the bytes are there.
            let written =
                unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(written) {
                Ok(written @ 1..) => rest = &rest[written..],
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    fn text(line: &Line) -> String {
        String::from_utf8(line.bytes[..line.length].to_vec()).unwrap()
    }

    #[test]
    fn numbers_are_written_as_people_do() {
        let mut line = Line::new();
        line.decimal(0).text(" ").decimal(usize::MAX).text(" 0x").hexadecimal(0xfe0);
        assert_eq!(text(&line), std::format!("0 {} 0xfe0", usize::MAX));
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut line = Line::new();
        for _ in 0..100 {
            line.text("ten bytes.");
        }
        assert_eq!(text(&line), "ten bytes.".repeat(100)[..Line::MOST]);
    }
}

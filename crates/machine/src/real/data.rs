//! Computation and data need no declaration where they are real.

#[inline]
pub(crate) fn work(_nanos: u64) {}

pub(crate) fn burn(nanos: u64) {
    #[cfg(feature = "std")]
    {
        let span = crate::clock::Span::from_now(nanos);
        while !span.is_over() {}
    }
    #[cfg(not(feature = "std"))]
    crate::wait::delay(nanos);
}

#[inline]
pub(crate) fn read(_start: *const (), _bytes: usize) {}

#[inline]
pub(crate) fn write(_start: *const (), _bytes: usize) {}

#[inline]
pub(crate) fn label(_start: *const (), _bytes: usize, _name: &str) {}

//! The beginning of a tour.

use super::instance::Instance;
use core::fmt;

/// The most cities that can be searched: a tour keeps a bit for each in one word.
pub const MOST_CITIES: usize = 64;

/// Some cities in the order in which they are visited; the first is always city 0.
#[derive(Clone, Copy)]
pub struct Tour {
    /// A bit for each city that has been visited.
    visited: u64,
    /// To the last city, and not back.
    length: u64,
    /// The cities, in order. The first `count` are visited.
    cities: [u8; MOST_CITIES],
    /// The number of cities visited.
    count: u8,
}

impl fmt::Debug for Tour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tour({:?}, {})", &self.cities[..self.count()], self.length)
    }
}

impl Tour {
    /// City 0.
    pub(super) fn new() -> Self {
        Self { visited: 1, length: 0, cities: [0; MOST_CITIES], count: 1 }
    }

    /// Returns the number of cities visited.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count.into()
    }

    /// Returns the length so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The cities in order.
    pub(super) fn cities(&self) -> Vec<usize> {
        self.cities[..self.count()].iter().map(|&city| city.into()).collect()
    }

    pub(super) fn last(&self) -> usize {
        self.cities[self.count() - 1].into()
    }

    /// The cities that it has not visited, as bits.
    pub(super) fn left(&self, instance: &Instance) -> u64 {
        let all = u64::MAX >> (u64::BITS as usize - instance.cities());
        all & !self.visited
    }

    /// The cities that may come next. One direction of each tour is enough, so city 2 never comes
    /// before city 1.
    pub(super) fn next(&self, instance: &Instance) -> impl Iterator<Item = usize> + use<> {
        let left = self.left(instance);
        let both = 0b110;
        cities(if left & both == both { left & !0b100 } else { left })
    }

    /// With `city` visited next.
    pub(super) fn with(mut self, city: usize, instance: &Instance) -> Self {
        self.length += u64::from(instance.distance(self.last(), city));
        self.visited |= 1 << city;
        self.cities[self.count()] = city as u8;
        self.count += 1;
        self
    }
}

/// Returns the cities whose bits are set.
pub(super) fn cities(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let city = bits.trailing_zeros();
        (bits != 0).then(|| {
            bits &= bits - 1;
            city as usize
        })
    })
}

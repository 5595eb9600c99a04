//! The cities and how far they are apart.

use core::fmt;

/// A symmetric instance of the travelling salesman problem. Cities are counted from 0 here, from 1
/// in files and in messages about them.
#[derive(Clone, PartialEq, Eq)]
pub struct Instance {
    /// The name, or nothing.
    name: String,
    /// The number of cities.
    cities: usize,
    /// Row by row, and symmetric.
    distances: Vec<u32>,
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance")
            .field("name", &self.name)
            .field("cities", &self.cities)
            .finish_non_exhaustive()
    }
}

impl Instance {
    /// An instance in which `distance` is asked once for each pair of cities, the greater first.
    ///
    /// ```
    /// use stanchion_applications::tsp::Instance;
    /// // On a line, one apart.
    /// let line = Instance::new("line", 5, |a, b| (a - b) as u32);
    /// assert_eq!((line.distance(1, 4), line.length(&[0, 1, 2, 3, 4])), (3, 8));
    /// ```
    #[must_use]
    pub fn new(name: &str, cities: usize, mut distance: impl FnMut(usize, usize) -> u32) -> Self {
        let mut distances = vec![0; cities * cities];
        for a in 0..cities {
            for b in 0..a {
                let distance = distance(a, b);
                distances[a * cities + b] = distance;
                distances[b * cities + a] = distance;
            }
        }
        Self { name: name.to_owned(), cities, distances }
    }

    pub(super) fn rename(&mut self, name: String) {
        self.name = name;
    }

    /// Returns the name in the file, or nothing if it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of cities.
    #[must_use]
    pub fn cities(&self) -> usize {
        self.cities
    }

    /// From one city to another.
    ///
    /// # Panics
    ///
    /// If there is no such city.
    #[must_use]
    pub fn distance(&self, from: usize, to: usize) -> u32 {
        assert!(to < self.cities, "city {to} of {}", self.cities);
        self.distances[from * self.cities + to]
    }

    /// The length of the tour through `cities` and back to the first.
    ///
    /// # Panics
    ///
    /// If there is no such city.
    #[must_use]
    pub fn length(&self, cities: &[usize]) -> u64 {
        let next = cities.iter().cycle().skip(1);
        cities.iter().zip(next).map(|(&from, &to)| u64::from(self.distance(from, to))).sum()
    }
}

//! XXH64: a hash for telling files apart, **not** for security: it is easy to make two files with
//! the same hash on purpose.
//!
//! The same numbers as `xxhsum -H1`. Source: Y. Collet, the xxHash specification, version 0.1.1,
//! section "XXH64".

use std::io::{self, Read};

const PRIMES: [u64; 5] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];

/// Bytes that are taken at a time.
const STRIPE: usize = 32;

/// The hash of some bytes that come one after the other.
#[derive(Clone, Debug)]
pub struct Hash {
    /// The four lanes of the state.
    lanes: [u64; 4],
    /// Bytes that are no whole stripe yet.
    rest: [u8; STRIPE],
    /// The number of bytes so far.
    length: u64,
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIMES[1])).rotate_left(31).wrapping_mul(PRIMES[0])
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("8 bytes"))
}

fn stripe(lanes: &mut [u64; 4], bytes: &[u8]) {
    for (lane, bytes) in lanes.iter_mut().zip(bytes.chunks_exact(8)) {
        *lane = round(*lane, word(bytes));
    }
}

impl Default for Hash {
    fn default() -> Self {
        Self::new()
    }
}

impl Hash {
    /// Of no bytes so far; the seed is 0.
    pub fn new() -> Self {
        let [one, two, ..] = PRIMES;
        let lanes = [one.wrapping_add(two), two, 0, 0_u64.wrapping_sub(one)];
        Self { lanes, rest: [0; STRIPE], length: 0 }
    }

    /// Adds bytes to those that are hashed.
    pub fn write(&mut self, mut bytes: &[u8]) {
        let waiting = (self.length % STRIPE as u64) as usize;
        self.length += bytes.len() as u64;
        if waiting > 0 {
            let (now, later) = bytes.split_at(bytes.len().min(STRIPE - waiting));
            self.rest[waiting..][..now.len()].copy_from_slice(now);
            if waiting + now.len() < STRIPE {
                return;
            }
            stripe(&mut self.lanes, &self.rest);
            bytes = later;
        }
        let stripes = bytes.chunks_exact(STRIPE);
        let left = stripes.remainder();
        stripes.for_each(|bytes| stripe(&mut self.lanes, bytes));
        self.rest[..left.len()].copy_from_slice(left);
    }

    /// Returns the hash of all bytes so far.
    pub fn finish(&self) -> u64 {
        let [p1, p2, p3, p4, p5] = PRIMES;
        let mut hash = match self.length < STRIPE as u64 {
            true => p5,
            false => {
                let turns = [1, 7, 12, 18];
                let sum =
                    |sum: u64, (lane, turn): (&u64, u32)| sum.wrapping_add(lane.rotate_left(turn));
                let hash = self.lanes.iter().zip(turns).fold(0, sum);
                self.lanes.iter().fold(hash, |hash, &lane| {
                    (hash ^ round(0, lane)).wrapping_mul(p1).wrapping_add(p4)
                })
            }
        };
        hash = hash.wrapping_add(self.length);
        let rest = &self.rest[..(self.length % STRIPE as u64) as usize];
        let words = rest.chunks_exact(8);
        let mut tail = words.remainder();
        for bytes in words {
            hash = (hash ^ round(0, word(bytes))).rotate_left(27).wrapping_mul(p1).wrapping_add(p4);
        }
        if let Some((half, bytes)) = tail.split_first_chunk::<4>() {
            hash ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(p1);
            hash = hash.rotate_left(23).wrapping_mul(p2).wrapping_add(p3);
            tail = bytes;
        }
        for &byte in tail {
            hash = (hash ^ u64::from(byte).wrapping_mul(p5)).rotate_left(11).wrapping_mul(p1);
        }
        hash = (hash ^ hash >> 33).wrapping_mul(p2);
        hash = (hash ^ hash >> 29).wrapping_mul(p3);
        hash ^ hash >> 32
    }
}

/// Most files are read into so many bytes of the thread's own stack.
const SMALL: usize = 8 << 10;

/// The number of bytes that are read at a time from a longer file.
const LARGE: usize = 128 << 10;

/// The hash of all that is still to be read, and how many bytes that was.
///
/// # Errors
///
/// Those of `file`.
pub fn of(file: &mut impl Read) -> io::Result<(u64, u64)> {
    let mut hash = Hash::new();
    let mut small = [0; SMALL];
    if fill(file, &mut small, &mut hash)? {
        let mut large = vec![0; LARGE];
        while fill(file, &mut large, &mut hash)? {}
    }
    Ok((hash.finish(), hash.length))
}

/// Reads once; whether there was something.
fn fill(file: &mut impl Read, buffer: &mut [u8], hash: &mut Hash) -> io::Result<bool> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(read) => {
                hash.write(&buffer[..read]);
                return Ok(read > 0);
            }
        }
    }
}

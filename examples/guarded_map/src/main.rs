//! A program of dashmap#369's kind: a guard is held across another access of the same map, in two
//! threads. It ends well as long as the threads do not meet, as here, where one comes after the
//! other.
//!
//! ```sh
//! STANCHION_ORDERS=orders.txt cargo run --manifest-path examples/guarded_map/Cargo.toml
//! ```

use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Barrier;
use std::thread;

use dashmap::DashMap;

/// The balances of accounts. Its hasher has no random seed, so that each run has the same shards.
type Accounts = DashMap<&'static str, u64, BuildHasherDefault<DefaultHasher>>;

/// Moves an amount, and holds the guard of one account while it changes the other one. `both` is
/// passed in between.
fn transfer(accounts: &Accounts, from: &str, to: &'static str, amount: u64, both: &Barrier) {
    let mut payer = accounts.get_mut(from).expect("an account exists");
    *payer -= amount;
    both.wait();
    *accounts.entry(to).or_insert(0) += amount; // the user's own line
}

/// Sums a map up inside of an access to it: this blocks the thread itself.
fn read_own(accounts: &Accounts) {
    let mut account = accounts.get_mut("alice").expect("an account exists");
    *account = accounts.iter().map(|entry| *entry.value()).sum();
}

fn main() {
    let accounts = Accounts::with_hasher_and_shard_amount(BuildHasherDefault::default(), 16);
    accounts.insert("alice", 100);
    accounts.insert("bob", 100);
    let mode = std::env::args().nth(1);
    let (alone, both) = (Barrier::new(1), Barrier::new(2));
    thread::scope(|scope| match mode.as_deref() {
        // The threads meet, and block each other forever.
        Some("--meet") => {
            scope.spawn(|| transfer(&accounts, "alice", "bob", 10, &both));
            scope.spawn(|| transfer(&accounts, "bob", "alice", 30, &both));
        }
        // A thread blocks itself forever.
        Some("--read-own") => {
            scope.spawn(|| read_own(&accounts));
        }
        // One thread comes after the other one.
        _ => {
            let first = scope.spawn(|| transfer(&accounts, "alice", "bob", 10, &alone));
            first.join().expect("a transfer does not panic");
            scope.spawn(|| transfer(&accounts, "bob", "alice", 30, &alone));
        }
    });
    println!("alice has {}", *accounts.get("alice").expect("an account exists"));
}

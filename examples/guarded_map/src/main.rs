//! A program of dashmap#369's kind: a guard is held across another access of the same map, in two
//! threads. It ends well as long as the threads do not meet, as here, where one comes after the
//! other.
//!
//! ```sh
//! STANCHION_ORDERS=orders.txt cargo run --manifest-path examples/guarded_map/Cargo.toml
//! ```

use std::hash::{BuildHasherDefault, DefaultHasher};
use std::thread;

use dashmap::DashMap;

/// The balances of accounts. Its hasher has no random seed, so that each run has the same shards.
type Accounts = DashMap<&'static str, u64, BuildHasherDefault<DefaultHasher>>;

/// Moves an amount, and holds the guard of one account while it changes the other one.
fn transfer(accounts: &Accounts, from: &'static str, to: &'static str, amount: u64) {
    let mut payer = accounts.get_mut(from).expect("an account exists");
    *payer -= amount;
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
    thread::scope(|scope| {
        let run = |act: fn(&Accounts)| {
            scope.spawn({
                let accounts = &accounts;
                move || act(accounts)
            })
        };
        for act in [
            |accounts: &Accounts| transfer(accounts, "alice", "bob", 10),
            |accounts: &Accounts| transfer(accounts, "bob", "alice", 30),
        ] {
            run(act).join().expect("a transfer does not panic");
        }
        if std::env::args().any(|argument| argument == "--read-own") {
            run(read_own).join().expect("this blocks forever");
        }
    });
    println!("alice has {}", *accounts.get("alice").expect("an account exists"));
}

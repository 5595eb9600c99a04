//! Systems where no thread can be stopped: level 1, which stops none.

use core::time::Duration;
use std::time::Instant;

use crate::{Account, Refused, Times};

/// Nothing to do.
#[derive(Debug)]
pub(crate) struct Scheduler(());

impl Scheduler {
    pub(crate) fn start(times: Times, _signal: Option<i32>) -> Result<Self, Refused> {
        if times.others == 0 {
            Ok(Self(()))
        } else {
            Err(Refused::Unsupported { os: std::env::consts::OS })
        }
    }

    pub(crate) fn join(&self) -> Result<Member, Refused> {
        Ok(Member(Instant::now()))
    }
}

/// Since when.
#[derive(Debug)]
pub(crate) struct Member(Instant);

impl Member {
    pub(crate) fn account(&self) -> Account {
        Account { granted: self.0.elapsed(), stopped: Duration::ZERO, ..Account::default() }
    }
}

pub(crate) mod arbiter;
pub(crate) mod idle_workers;
pub(crate) mod limit;
pub(crate) mod overcommit;
pub(crate) mod ownership;
pub(crate) mod parking;
pub(crate) mod slot;
pub(crate) mod worker_record;

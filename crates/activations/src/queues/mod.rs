pub(crate) mod mailbox;
pub(crate) mod prioritized;
pub(crate) mod ready;
pub(crate) mod timers;

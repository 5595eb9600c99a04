pub(crate) mod state;

//! Samples for the facades of other crates: each by a feature.

#[cfg(feature = "metrics")]
mod counts;
#[cfg(feature = "tracing")]
mod events;

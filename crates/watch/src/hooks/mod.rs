//! The hooks of pools: each kind by a feature.

#[cfg(any(feature = "rayon", feature = "threadpool"))]
mod pools;
#[cfg(feature = "tokio")]
mod runtime;

#[cfg(any(feature = "rayon", feature = "threadpool"))]
pub use self::pools::PoolHooks;
#[cfg(feature = "tokio")]
pub use self::runtime::TokioHooks;

//! The methods of barriers with anonymous members: the `wait(&self)` of the standard library's
//! barrier, and [`Barrier`](super::Barrier) by it.
//!
//! Why not defaults of a trait: users would have to import that trait. Why not written out in each
//! file: it is the same four times, and hides the differences. A file says how its members wait,
//! and what else its barrier shows:
//!
//! | given | meaning |
//! | --- | --- |
//! | `wait_until(&self, &mut impl WaitPolicy, Deadline)` | arrives and waits |
//! | `arrivals` | the field with the word that counts arrivals |
//! | `$shown` | methods of the barrier; `Debug` shows their results |

/// Implements the methods for a barrier. See the head of the file.
macro_rules! anonymous_barrier {
    ($barrier:ident $(, $shown:ident)*) => {
        impl $barrier {
            /// Waits for the others.
            ///
            /// # Errors
            ///
            /// [`Broken`](super::Broken) if it is.
            pub fn wait(&self) -> Result<super::Crossing, super::Broken> {
                let mut patient = <stanchion_machine::wait::Patient as stanchion_machine::wait::WaitPolicy>::start();
                self.wait_until(&mut patient, stanchion_machine::clock::Deadline::NEVER)
            }

            /// Waits for the others, but breaks the barrier if they have not arrived within
            /// `timeout`.
            ///
            /// # Errors
            ///
            /// [`Broken`](super::Broken) if it is.
            pub fn wait_timeout(
                &self,
                timeout: core::time::Duration,
            ) -> Result<super::Crossing, super::Broken> {
                let mut patient = <stanchion_machine::wait::Patient as stanchion_machine::wait::WaitPolicy>::start();
                self.wait_until(&mut patient, stanchion_machine::clock::Deadline::after(timeout))
            }
        }

        impl super::Barrier for $barrier {
            type MemberState = ();

            fn with_members(members: usize) -> Result<Self, super::WrongSize> {
                Self::new(members)
            }

            fn members(&self) -> usize {
                self.arrivals.members()
            }

            fn member_state(&self, index: usize) -> Self::MemberState {
                assert!(index < self.members(), "member {index} of a barrier for {}", self.members());
            }

            #[inline]
            fn wait_at(
                &self,
                (): &mut Self::MemberState,
                policy: &mut impl stanchion_machine::wait::WaitPolicy,
                deadline: stanchion_machine::clock::Deadline,
            ) -> Result<super::Crossing, super::Broken> {
                self.wait_until(policy, deadline)
            }

            fn break_with(&self, why: super::Broken) {
                self.arrivals.break_with(why);
            }

            fn broken(&self) -> Option<super::Broken> {
                self.arrivals.broken()
            }
        }

        impl core::fmt::Debug for $barrier {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($barrier))
                    .field("members", &self.arrivals.members())
                    $(.field(stringify!($shown), &self.$shown()))*
                    .field("arrived", &self.arrivals.arrived())
                    .field("broken", &self.arrivals.broken())
                    .finish()
            }
        }
    };
}

pub(super) use anonymous_barrier;

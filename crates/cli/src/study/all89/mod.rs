//! Anderson, Lazowska and Levy 1989: thread management and spin locks on a Sequent Symmetry with 20 processors.

pub(crate) mod fig3_1;
pub(crate) mod fig3_2;
pub(crate) mod fig3_3;
pub(crate) mod fig3_4;
pub(crate) mod fig3_5;
pub(crate) mod fig4_1;
pub(crate) mod fig4_2;
pub(crate) mod fig4_3;
pub(crate) mod fig5_1;
pub(crate) mod fig5_2;
pub(crate) mod fig5_3;
pub(crate) mod fig5_4;
mod projection;
pub(crate) mod sec3_6;
pub(crate) mod sec5_1;
pub(crate) mod table3_1;
mod threads;

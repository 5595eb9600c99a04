//! How members are taken off whose slot's turn is over.

/// What makes a member leave its seat when its gang's turn is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Switching {
    /// It looks whether its turn is over at barriers and collectives, while it waits there, and at [checkpoints](crate::Member::checkpoint). One that does
    /// nothing of this overstays: it is put out of its seat, and runs beside whoever comes.
    #[default]
    Cooperative,
}

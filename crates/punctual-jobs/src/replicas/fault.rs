//! Faults of statements that can be put in, one at a time, to see that they are found.

/// A statement that does something else than its text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A claim of a tick does not compare the row with what was seen.
    TakeWithoutComparing,
    /// A claim of a tick takes a row that a guard has locked.
    TakeBesideAGuard,
    /// A lease is renewed whatever the fencing token is.
    RenewAnothersLease,
    /// The end of a run is answered, and not written.
    LoseALeave,
    /// A tick that did not run is given back as one that did.
    GiveBackTheTickAsDone,
    /// A job is claimed although another machine has it.
    ClaimWhatIsClaimed,
    /// A job is claimed before its moment.
    ClaimWithoutLookingAtTheClock,
    /// A job is claimed by a worker whose lease is over.
    ClaimWithoutALease,
    /// A second job of an ordering key is claimed.
    ClaimASecondOfAKey,
    /// The end of a run ends the claim of another.
    EndAnothersClaim,
    /// A job that is freed keeps its claim.
    LoseARelease,
    /// A heartbeat does not free the claims whose answers were lost.
    KeepUnknownClaims,
    /// The jobs of a living machine are swept.
    SweepTheLiving,
    /// The jobs of a dead machine are left to it.
    SweepNothing,
    /// A tick is taken a second time.
    TakeATickTwice,
    /// A tick is taken, and its job is not enqueued.
    LoseTheJobOfATick,
    /// What was told is not written down.
    ForgetWhatWasTold,
    /// Jobs that are discarded are left untold.
    DiscardWithoutAWord,
}

impl Fault {
    pub(super) const ALL: &'static [Self] = &[
        Self::TakeWithoutComparing,
        Self::TakeBesideAGuard,
        Self::RenewAnothersLease,
        Self::LoseALeave,
        Self::GiveBackTheTickAsDone,
        Self::ClaimWhatIsClaimed,
        Self::ClaimWithoutLookingAtTheClock,
        Self::ClaimWithoutALease,
        Self::ClaimASecondOfAKey,
        Self::EndAnothersClaim,
        Self::LoseARelease,
        Self::KeepUnknownClaims,
        Self::SweepTheLiving,
        Self::SweepNothing,
        Self::TakeATickTwice,
        Self::LoseTheJobOfATick,
        Self::ForgetWhatWasTold,
        Self::DiscardWithoutAWord,
    ];
}

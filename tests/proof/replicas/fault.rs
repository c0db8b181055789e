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
    /// A look at a row whose tick is older than ten seconds shows one of that moment.
    LookAtALaterTick,
    /// A job is claimed although another machine has it.
    ClaimWhatIsClaimed,
    /// A job is claimed before its moment.
    ClaimWithoutLookingAtTheClock,
    /// A job is claimed by a worker whose lease is over.
    ClaimWithoutALease,
    /// A second job of an ordering key is claimed.
    ClaimASecondOfAKey,
    /// A job that became due more than a second ago is not marked.
    MarkNothingOld,
    /// The jobs of a kind with a limit are counted while another claim of the kind is under way.
    CountWithoutTheLock,
    /// A count of the jobs of a kind with a limit leaves out those that ran at the count before it.
    ForgetWhatStood,
    /// The claims that stood when another server had counted them are taken for those that stand at this one.
    TrustTheCountOfAnotherServer,
    /// No job of a kind with a limit is counted, as if the machines had no more slots than it allows.
    ShareWithoutLookingAtTheSlots,
    /// A job of a kind with a limit counts although its claim has ended.
    CountAClaimThatHasEnded,
    /// A claim of a kind with a limit in a window takes no token.
    ClaimWithoutSpending,
    /// A claim that finds no token does not say when there is one.
    SayNothingOfTheNextToken,
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
    /// A schedule is settled although it is another one by now.
    SettleWithoutComparing,
    /// A tick of a schedule is settled, and its job is not enqueued.
    SettleWithoutAJob,
    /// A tick of a schedule has a job however many wait or run.
    SettleWithoutCounting,
    /// A schedule is settled as far as ticks that wait for room.
    SettleWhatWaits,
    /// A job that is to be replaced goes on.
    ReplaceWithoutCancelling,
    /// A schedule that is paused ticks.
    TickWhatIsPaused,
    /// A schedule that goes on makes up for its pause.
    ResumeFromWhereItWas,
    /// A schedule that is put keeps its revision, and so does one that is settled.
    KeepTheRevision,
    /// Another expression makes up for ticks before it was put.
    PutWithoutANewBeginning,
}

impl Fault {
    pub(super) const ALL: &'static [Self] = &[
        Self::TakeWithoutComparing,
        Self::TakeBesideAGuard,
        Self::RenewAnothersLease,
        Self::LoseALeave,
        Self::GiveBackTheTickAsDone,
        Self::LookAtALaterTick,
        Self::ClaimWhatIsClaimed,
        Self::ClaimWithoutLookingAtTheClock,
        Self::ClaimWithoutALease,
        Self::ClaimASecondOfAKey,
        Self::MarkNothingOld,
        Self::CountWithoutTheLock,
        Self::ForgetWhatStood,
        Self::TrustTheCountOfAnotherServer,
        Self::ShareWithoutLookingAtTheSlots,
        Self::CountAClaimThatHasEnded,
        Self::ClaimWithoutSpending,
        Self::SayNothingOfTheNextToken,
        Self::EndAnothersClaim,
        Self::LoseARelease,
        Self::KeepUnknownClaims,
        Self::SweepTheLiving,
        Self::SweepNothing,
        Self::TakeATickTwice,
        Self::LoseTheJobOfATick,
        Self::ForgetWhatWasTold,
        Self::DiscardWithoutAWord,
        Self::SettleWithoutComparing,
        Self::SettleWithoutAJob,
        Self::SettleWithoutCounting,
        Self::SettleWhatWaits,
        Self::ReplaceWithoutCancelling,
        Self::TickWhatIsPaused,
        Self::ResumeFromWhereItWas,
        Self::KeepTheRevision,
        Self::PutWithoutANewBeginning,
    ];
}

//! The gates of tasks: what they do when they are asked, what they answer, and the leases that they give.
//! All of it is noted in the ledger.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use punctual::{
    CancellationToken, RunGate,
    gate::{Entry, Lease, RunEnd, Tick},
};

use crate::{
    scenario::{Act, Answer},
    world::World,
};

/// The gate of one task.
pub(crate) struct Gate {
    pub(crate) world: Arc<World>,
    pub(crate) id: usize,
    pub(crate) act: Act,
    pub(crate) answer: Answer,
}

impl RunGate for Gate {
    fn enter(&self, tick: &Tick<'_>) -> Entry {
        let (world, id) = (&self.world, self.id);
        let planned = tick.planned().map(|planned| planned.duration_since(world.begin));
        let questions = world
            .note(|ledger, now| ledger.asks_gate(id, planned.unwrap_or(Duration::MAX), tick, now));
        if tick.is_on_wall() {
            world.note(|ledger, _| ledger.is_about_tick(id, tick.planned_wall()));
        }
        world.act(id, self.act);
        let panics = matches!(self.act, Act::Panic) && world.faults().body;
        let answer = match self.answer {
            _ if panics => Answer::Skip,
            Answer::InTurn if questions % 2 == 0 => Answer::Skip,
            Answer::InTurn => Answer::Hold,
            Answer::Again(_) if tick.attempt() > 1 => Answer::Hold,
            answer => answer,
        };
        world.note(|ledger, now| ledger.gate_answers(id, answer, now));
        assert!(!panics, "the gate of task {id} panics");
        match answer {
            Answer::Run => Entry::Run,
            Answer::Hold | Answer::InTurn => {
                Entry::Hold(Arc::new(Leased { world: Arc::clone(world), id }))
            }
            Answer::Skip => Entry::Skip,
            Answer::Again(steps) => Entry::Again(steps.span()),
        }
    }
}

struct Leased {
    world: Arc<World>,
    id: usize,
}

impl Lease for Leased {
    fn watch(&self, token: CancellationToken) {
        // A lease that is lost at once asks the body to stop, and changes nothing else.
        if self.id % 3 == 0 {
            token.cancel();
        }
    }

    fn leave(&self, end: RunEnd<'_>, _: Option<Instant>) {
        let has_run = !matches!(end, RunEnd::NotRun);
        self.world.note(|ledger, _| ledger.leaves(self.id, has_run));
        self.world.call_back(self.world.callbacks.other);
        let faults = self.world.faults();
        assert!(!(faults.capture && self.id % 4 == 1), "the lease of task {} panics", self.id);
    }
}

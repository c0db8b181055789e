//! The history: each run that has ended, once, with how it has.

use std::{collections::BTreeMap, time::Duration};

use punctual_jobs::{HistoryFilter, JobChange, JobError, JobId, JobOutcome, JobRun, Jobs, PastRun};

use crate::world::{Flaky, Hold, LONG, Note, SHORT, World, standard};

/// Waits until a job has so many runs, and returns them, the first one first.
fn runs<W: World>(world: &W, job: JobId, count: usize) -> Vec<PastRun> {
    let of_job = HistoryFilter { job: Some(job), ..HistoryFilter::default() };
    world.until("its runs", || world.queue().history(&of_job).unwrap().len() >= count);
    let mut runs = world.queue().history(&of_job).unwrap();
    assert_eq!(runs.len(), count, "{runs:?}");
    runs.reverse();
    runs
}

fn outcomes(runs: &[PastRun]) -> Vec<(u32, JobOutcome)> {
    runs.iter().map(|run| (run.attempt, run.outcome)).collect()
}

pub(crate) fn each_attempt_is_in_the_history<W: World>() {
    let world = W::open(|scene| standard(scene).max_attempts::<Flaky>(3));
    let before = world.wall();
    let job = world.queue().now(Flaky::new("call", 2)).key("k").enqueue().unwrap();
    let runs = runs(&world, job.id, 3);
    let how = [(1, JobOutcome::Failed), (2, JobOutcome::Failed), (3, JobOutcome::Succeeded)];
    assert_eq!(outcomes(&runs), how);
    for run in &runs {
        assert_eq!((run.kind.as_str(), run.key.as_deref()), ("flaky", Some("k")));
        assert!(run.machine.ends_with(&format!(":{}", std::process::id())), "{run}");
        assert!(before <= run.began + Duration::from_secs(1) && run.began <= run.ended, "{run:?}");
    }
    assert_eq!(runs[1].error.as_deref(), Some("not yet"));
    assert_eq!(runs[2].error, None);
    assert!(runs[0].ended <= runs[1].began, "{runs:?}");
}

pub(crate) fn a_run_that_has_not_ended_is_not_in_the_history<W: World>() {
    let world = W::open(standard);
    let job = world.queue().now(Hold::new("job")).enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    assert_eq!(world.queue().history(&HistoryFilter::default()).unwrap(), []);
    world.scene().gate.cancel();
    assert_eq!(outcomes(&runs(&world, job.id, 1)), [(1, JobOutcome::Succeeded)]);
}

pub(crate) fn the_history_says_how_a_run_has_ended<W: World>() {
    let world = W::open(|scene| {
        standard(scene).on(|run: &JobRun, _: Snoozer| match run.attempt {
            1 if run.queue().cancel("asked before").is_err() => Ok(()),
            _ if run.key.is_some() => Err(JobError::discard("of no use")),
            _ => Err(JobError::snooze(Duration::from_secs(3600))),
        })
    });
    let queue = world.queue();
    let lost = queue.now(Flaky::new("call", 9)).max_attempts(1).enqueue().unwrap();
    assert_eq!(outcomes(&runs(&world, lost.id, 1)), [(1, JobOutcome::Discarded)]);
    let snoozed = queue.now(Snoozer {}).enqueue().unwrap();
    assert_eq!(outcomes(&runs(&world, snoozed.id, 1)), [(1, JobOutcome::Snoozed)]);
    let useless = queue.now(Snoozer {}).key("k").enqueue().unwrap();
    let of_useless = runs(&world, useless.id, 1);
    assert_eq!(outcomes(&of_useless), [(1, JobOutcome::Discarded)]);
    assert_eq!(of_useless[0].error.as_deref(), Some("of no use"));
    let cancelled = queue.now(Hold::new("job")).key("c").enqueue().unwrap();
    world.until("its begin", || world.log().has("job begins"));
    assert_eq!(queue.cancel("c").unwrap(), JobChange::Signalled);
    assert_eq!(outcomes(&runs(&world, cancelled.id, 1)), [(1, JobOutcome::Cancelled)]);
    let given_up = queue.now(Hold::new("second")).enqueue().unwrap();
    world.until("its begin", || world.log().has("second begins"));
    assert_eq!(queue.discard(given_up.id).unwrap(), JobChange::Signalled);
    assert_eq!(outcomes(&runs(&world, given_up.id, 1)), [(1, JobOutcome::Discarded)]);
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Snoozer {}

impl punctual_jobs::Job for Snoozer {
    const NAME: &'static str = "snoozer";
}

pub(crate) fn the_history_is_filtered_and_paged<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    for number in 0..5_u32 {
        queue.now(Note::new(&format!("{number}"))).enqueue().unwrap();
        let of_notes = HistoryFilter { kind: Some("note".into()), ..HistoryFilter::default() };
        world.until("its end", || queue.history(&of_notes).unwrap().len() > number as usize);
    }
    queue.now(Flaky::new("call", 0)).enqueue().unwrap();
    world.until("its end", || queue.history(&HistoryFilter::default()).unwrap().len() == 6);
    let all = queue
        .history(&HistoryFilter { kind: Some("note".into()), ..HistoryFilter::default() })
        .unwrap();
    assert_eq!(all.len(), 5);
    assert!(all.windows(2).all(|two| two[0].id > two[1].id && two[0].ended >= two[1].ended));
    let page =
        HistoryFilter { kind: Some("note".into()), limit: Some(2), ..HistoryFilter::default() };
    assert_eq!(queue.history(&page).unwrap(), all[..2]);
    assert_eq!(
        queue.history(&HistoryFilter { before: Some(all[1].id), ..page.clone() }).unwrap(),
        all[2..4]
    );
    assert_eq!(
        queue.history(&HistoryFilter { before: Some(all[3].id), ..page }).unwrap(),
        all[4..]
    );
    assert_eq!(
        queue
            .history(&HistoryFilter { schedule: Some("none".into()), ..HistoryFilter::default() })
            .unwrap(),
        []
    );
    assert_eq!(
        queue.history(&HistoryFilter { job: Some(JobId(-1)), ..HistoryFilter::default() }).unwrap(),
        []
    );
}

pub(crate) fn a_removed_job_leaves_its_history<W: World>() {
    let world = W::open(|scene| {
        let log = scene.log.clone();
        Jobs::new()
            .on(|_: &JobRun, _: Flaky| Err(JobError::new("never")))
            .backoff::<Flaky>(punctual::Backoff::constant(36_000 * SHORT))
            .on_discarded(move |_| log.say("discarded"))
    });
    let job = world.queue().now(Flaky::new("call", 9)).enqueue().unwrap();
    let before = runs(&world, job.id, 1);
    world.queue().remove(job.id).unwrap();
    assert_eq!(runs(&world, job.id, 1), before);
}

/// The ends of each kind: the kind, the outcome, and how many.
type Ends = BTreeMap<(String, String), u64>;

fn ends_of(runs: &[PastRun]) -> Ends {
    let mut ends = Ends::new();
    for run in runs {
        *ends.entry((run.kind.clone(), run.outcome.to_string())).or_default() += 1;
    }
    ends
}

fn counted<W: World>(world: &W) -> Ends {
    const ALL: [JobOutcome; 7] = [
        JobOutcome::Succeeded,
        JobOutcome::Failed,
        JobOutcome::Discarded,
        JobOutcome::Snoozed,
        JobOutcome::Released,
        JobOutcome::Lost,
        JobOutcome::Cancelled,
    ];
    let mut ends = Ends::new();
    for kind in world.queue().outcomes() {
        let seen = ALL.into_iter().filter(|outcome| kind.of(*outcome) > 0);
        ends.extend(seen.map(|of| ((kind.kind.clone(), of.to_string()), kind.of(of))));
    }
    ends
}

pub(crate) fn each_end_is_counted_as_the_history_has_it<W: World>() {
    let world = W::open(|scene| {
        standard(scene)
            .on(|run: &JobRun, _: Snoozer| match run.attempt {
                1 if run.key.is_some() => Err(JobError::snooze(Duration::MAX)),
                1 => panic!("a panic is a failure"),
                _ => Err(JobError::discard("of no use")),
            })
            .backoff::<Snoozer>(punctual::Backoff::constant(SHORT))
    });
    let queue = world.queue();
    let handled: Vec<_> = queue.outcomes().into_iter().map(|kind| kind.kind).collect();
    assert_eq!(handled, ["flaky", "hold", "note", "snoozer"], "also those without a run");
    assert_eq!(counted(&world), Ends::new());
    queue.now(Flaky::new("call", 1)).enqueue().unwrap();
    queue.now(Flaky::new("lost", 9)).max_attempts(2).enqueue().unwrap();
    queue.now(Snoozer {}).key("snoozed").enqueue().unwrap();
    queue.now(Snoozer {}).enqueue().unwrap();
    let begun = |job: Hold, key: &str| {
        let begins = format!("{} begins", job.text);
        let job = queue.now(job).key(key).enqueue().unwrap();
        world.until("its begin", || world.log().has(&begins));
        job.id
    };
    begun(Hold::new("first"), "cancelled");
    assert_eq!(queue.cancel("cancelled").unwrap(), JobChange::Signalled);
    let given_up = begun(Hold::new("second"), "given up");
    assert_eq!(queue.discard(given_up).unwrap(), JobChange::Signalled);
    begun(Hold::that_forgives("third"), "forgives");
    assert_eq!(queue.cancel("forgives").unwrap(), JobChange::Signalled);
    begun(Hold::that_fails("fourth"), "replaced");
    let later = queue.after(Duration::from_secs(3600), Note::new("later"));
    later.key("replaced").enqueue().unwrap();
    world.scene().gate.cancel();
    let expected = [
        ("flaky", "ran", 1),
        ("flaky", "failed", 2),
        ("flaky", "discarded", 1),
        ("hold", "ran", 1),
        ("hold", "cancelled", 2),
        ("hold", "discarded", 1),
        ("snoozer", "snoozed", 1),
        ("snoozer", "failed", 1),
        ("snoozer", "discarded", 1),
    ];
    let expected: Ends = expected
        .into_iter()
        .map(|(kind, how, runs)| ((kind.to_owned(), how.to_owned()), runs))
        .collect();
    world.until("all ends", || counted(&world) == expected);
    assert_eq!(ends_of(&queue.history(&HistoryFilter::default()).unwrap()), expected);
    let line = queue.outcomes()[0].to_string();
    assert_eq!(line, "\"flaky\" ran 1, failed 2, discarded 1");
}

pub(crate) fn what_a_shutdown_gives_back_is_counted_as_released<W: World>() {
    let world = W::open(standard);
    let queue = world.queue();
    // Its attempts would be used up, if this one counted.
    queue.now(Hold::new("job")).max_attempts(1).enqueue().unwrap();
    queue.now(Hold::that_forgives("other")).enqueue().unwrap();
    world.until("their begin", || world.log().has("job begins") && world.log().has("other begins"));
    // It waits, and has no run.
    queue.after(Duration::from_secs(3600), Note::new("later")).enqueue().unwrap();
    let report = world.shutdown(SHORT, LONG);
    assert_eq!(report.ran.len(), 1, "{report:?}");
    let counted = counted(&world).into_iter().map(|((kind, how), runs)| (kind, how, runs));
    let word = |word: &str| ("hold".to_owned(), word.to_owned(), 1);
    assert_eq!(counted.collect::<Vec<_>>(), [word("freed"), word("ran")]);
}

//! One row of each table, with its buttons.

use std::time::SystemTime;

use punctual_jobs::{JobStage, JobStatus, PastRun, ScheduleStatus};

use crate::text::{ago, escaped, short};

pub(crate) fn job_row(job: &JobStatus, now: SystemTime) -> String {
    let (id, kind, stage) = (job.id, escaped(&job.kind), job.stage);
    let key = job
        .key
        .as_ref()
        .map_or(String::new(), |key| format!("<br><small>{}</small>", escaped(key)));
    let machine = job
        .machine
        .as_ref()
        .map_or(String::new(), |it| format!("<br><small>{}</small>", escaped(it)));
    let moment = ago(job.since.or(job.due), now);
    let verbs: &[(&str, &str)] = match stage {
        JobStage::Running => &[("discard", "discard")],
        JobStage::Waiting => &[("retry", "run now"), ("discard", "discard")],
        _ => &[("retry", "retry"), ("remove", "remove")],
    };
    let buttons: String =
        verbs.iter().map(|(verb, text)| button(verb, text, "id", &id.to_string())).collect();
    format!(
        "<tr><td>{id}<td>{kind}{key}<td class='{stage}'>{stage}{machine}<td class=n>{moment}\
         <td class=n>{} of {}<td class=e>{}<td class=n>{buttons}",
        job.attempts,
        job.max_attempts,
        escaped(job.last_error.as_deref().unwrap_or_default())
    )
}

pub(crate) fn run_row(run: &PastRun, now: SystemTime) -> String {
    let took = run.ended.duration_since(run.began).unwrap_or_default();
    format!(
        "<tr><td>{}<td>{} <small>attempt {}</small><td class='{outcome}'>{outcome}<td class=n>{}<td class=n>{}<td>{}<td class=e>{}",
        run.job,
        escaped(&run.kind),
        run.attempt,
        ago(Some(run.ended), now),
        short(took),
        escaped(&run.machine),
        escaped(run.error.as_deref().unwrap_or_default()),
        outcome = run.outcome,
    )
}

pub(crate) fn schedule_row(schedule: &ScheduleStatus, now: SystemTime) -> String {
    let ticks = match (&schedule.expression, schedule.period) {
        (Some(expression), _) => {
            format!("{expression} ({})", schedule.zone.as_deref().unwrap_or_default())
        }
        (None, period) => format!("each {}", short(period.unwrap_or_default())),
    };
    let next = if schedule.is_paused { "paused".to_owned() } else { ago(schedule.next, now) };
    let verb = if schedule.is_paused { "resume" } else { "pause" };
    format!(
        "<tr><td>{name}<td>{}<td>{}<td class=n>{next}<td>{} <small>({} outstanding)</small><td>{}<td class=n>{}{}",
        escaped(&schedule.kind),
        escaped(&ticks),
        schedule.enqueued,
        schedule.outstanding,
        schedule.missed,
        button("run", "run now", "name", &schedule.name),
        button(verb, verb, "name", &schedule.name),
        name = escaped(&schedule.name),
    )
}

fn button(verb: &str, text: &str, field: &str, value: &str) -> String {
    format!(
        "<form method=post action=/do><input type=hidden name={field} value='{}'>\
         <button name=verb value={verb}>{text}</button></form>",
        escaped(value)
    )
}

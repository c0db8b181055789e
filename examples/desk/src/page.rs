//! The page as text. Everything that comes from a queue is escaped.

use std::{
    fmt::Write,
    time::{Duration, SystemTime},
};

use punctual_jobs::{JobStage, JobStatus, PastRun, ScheduleStatus};

use crate::{ROWS, Shown};

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--weak:#6b6b6b}\
@media(prefers-color-scheme:dark){:root{--weak:#a5a5a5}}\
body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:76rem;padding:0 1rem 3rem}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin:2rem 0 .4rem}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;padding:.35rem .7rem .35rem 0;border-bottom:1px solid var(--line);vertical-align:top}\
th{font-weight:600;color:var(--weak);white-space:nowrap}td.n{white-space:nowrap}\
td.e{max-width:24rem;overflow-wrap:anywhere}small,.none{color:var(--weak)}\
form{display:inline}button{font:inherit;padding:.1rem .55rem;margin:0 .3rem .2rem 0}\
nav a{margin-right:1rem}nav [aria-current]{font-weight:700}\
.discarded,.lost{color:#b3261e}.running,.ran{color:#19692c}\
@media(prefers-color-scheme:dark){.discarded,.lost{color:#ff9d94}.running,.ran{color:#86d993}}";

pub(crate) fn page(
    shown: &Shown,
    jobs: &[JobStatus],
    runs: &[PastRun],
    schedules: &[ScheduleStatus],
) -> String {
    let now = SystemTime::now();
    let mut page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>The desk</title>\
         <meta name=viewport content='width=device-width,initial-scale=1'><style>{STYLE}</style>\
         <h1>The desk</h1>{}",
        stages(shown)
    );
    let rows: String = jobs.iter().map(|job| job_row(job, now)).collect();
    table(&mut page, "Jobs", "Job|Kind|State|Moment|Attempts|Last error|", &rows);
    if let Some(last) = jobs.last().filter(|_| jobs.len() == ROWS) {
        let stage = escaped(shown.stage.as_deref().unwrap_or_default());
        let _ = write!(page, "<p><a href='/?stage={stage}&amp;after={}'>More</a>", last.id);
    }
    let rows: String = runs.iter().map(|run| run_row(run, now)).collect();
    table(&mut page, "History", "Job|Kind|Outcome|Ended|Took|Machine|Error", &rows);
    let rows: String = schedules.iter().map(|schedule| schedule_row(schedule, now)).collect();
    table(&mut page, "Schedules", "Name|Kind|Ticks|Next|Jobs|Missed|", &rows);
    page
}

fn stages(shown: &Shown) -> String {
    let stages =
        [("", "all"), ("waiting", "waiting"), ("running", "running"), ("discarded", "discarded")];
    let links = stages.map(|(stage, text)| {
        let is_current = shown.stage.as_deref().unwrap_or_default() == stage;
        let current = if is_current { " aria-current=page" } else { "" };
        format!("<a href='/?stage={stage}'{current}>{text}</a>")
    });
    format!("<nav>{}</nav>", links.concat())
}

fn table(page: &mut String, title: &str, heads: &str, rows: &str) {
    let heads: String = heads.split('|').map(|head| format!("<th>{head}")).collect();
    let _ = if rows.is_empty() {
        write!(page, "<h2>{title}</h2><p class=none>None.")
    } else {
        write!(page, "<h2>{title}</h2><div class=wide><table><tr>{heads}{rows}</table></div>")
    };
}

fn job_row(job: &JobStatus, now: SystemTime) -> String {
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
    let verbs: &[&str] = match stage {
        JobStage::Running => &["discard"],
        JobStage::Waiting => &["retry", "discard"],
        _ => &["retry", "remove"],
    };
    let buttons: String =
        verbs.iter().map(|verb| button(verb, verb, "id", &id.to_string())).collect();
    format!(
        "<tr><td>{id}<td>{kind}{key}<td class='{stage}'>{stage}{machine}<td class=n>{moment}\
         <td class=n>{} of {}<td class=e>{}<td class=n>{buttons}",
        job.attempts,
        job.max_attempts,
        escaped(job.last_error.as_deref().unwrap_or_default())
    )
}

fn run_row(run: &PastRun, now: SystemTime) -> String {
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

fn schedule_row(schedule: &ScheduleStatus, now: SystemTime) -> String {
    let ticks = match (&schedule.expression, schedule.period) {
        (Some(expression), _) => {
            format!("{expression} ({})", schedule.zone.as_deref().unwrap_or_default())
        }
        (None, period) => format!("each {}", short(period.unwrap_or_default())),
    };
    let next = if schedule.is_paused { "paused".to_owned() } else { ago(schedule.next, now) };
    let (verb, text) = if schedule.is_paused { ("resume", "resume") } else { ("pause", "pause") };
    format!(
        "<tr><td>{name}<td>{}<td>{}<td class=n>{next}<td>{} <small>({} outstanding)</small><td>{}<td class=n>{}{}",
        escaped(&schedule.kind),
        escaped(&ticks),
        schedule.enqueued,
        schedule.outstanding,
        schedule.missed,
        button("run", "run now", "name", &schedule.name),
        button(verb, text, "name", &schedule.name),
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

/// Returns how long ago a moment was, or how far ahead it is.
fn ago(moment: Option<SystemTime>, now: SystemTime) -> String {
    let Some(moment) = moment else { return "never".to_owned() };
    match moment.duration_since(now) {
        Ok(ahead) if ahead > Duration::from_secs(1) => format!("in {}", short(ahead)),
        Ok(_) => "now".to_owned(),
        Err(passed) => format!("{} ago", short(passed.duration())),
    }
}

fn short(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// Returns a text that stands for itself in HTML, in an attribute as well.
fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, letter| {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter => escaped.push(letter),
        }
        escaped
    })
}

//! The page as text. Everything that comes from a queue is escaped.

use std::{fmt::Write, time::SystemTime};

use punctual_jobs::{JobStatus, PastRun, ScheduleStatus};

use crate::{
    ROWS, Shown,
    rows::{job_row, run_row, schedule_row},
    text::escaped,
};

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--weak:#6b6b6b}\
@media(prefers-color-scheme:dark){:root{--weak:#a5a5a5}}\
body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:76rem;padding:0 1rem 3rem}\
h1{font-size:1.5rem}h2{font-size:1.1rem;margin:2rem 0 .4rem}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;padding:.35rem .7rem .35rem 0;border-bottom:1px solid var(--line);vertical-align:top}\
th{font-weight:600;color:var(--weak);white-space:nowrap}td.n{white-space:nowrap}\
td.e{min-width:14rem;max-width:24rem;overflow-wrap:anywhere}small,.none{color:var(--weak)}small{white-space:nowrap}\
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

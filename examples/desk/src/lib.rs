//! A page for a person who looks after a queue: what waits, runs and was discarded, which runs there were, and what is
//! scheduled, with buttons. It needs no JavaScript: a button posts a form, and the answer leads back to the page.
//!
//! Each visitor of the page can press the buttons: serve it to the machine itself, or behind the login of your program. A
//! button that another site has drawn is refused.

#![allow(clippy::disallowed_methods, reason = "a page shows the time of the system")]

mod page;
mod rows;
mod text;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Form, Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Redirect, Response},
    routing::{get, post},
};
use punctual_jobs::{
    HistoryFilter, JobFilter, JobId, JobQueue, JobStage, PostgresQueue, QueueError,
};
use serde::Deserialize;

/// Returns the routes of the page: `GET /`, and `POST /do` for the buttons.
pub fn desk(queue: JobQueue) -> Router {
    Router::new().route("/", get(show)).route("/do", post(act)).with_state(Arc::new(queue))
}

/// Which jobs are shown.
#[derive(Default, Deserialize)]
struct Shown {
    stage: Option<String>,
    kind: Option<String>,
    after: Option<i64>,
}

/// A button. It has the id of a job, or the name of a schedule.
#[derive(Deserialize)]
struct Button {
    verb: String,
    id: Option<i64>,
    name: Option<String>,
}

/// How many jobs a page has, and how many runs.
const ROWS: usize = 25;

async fn show(
    State(queue): State<Arc<JobQueue>>,
    Query(shown): Query<Shown>,
) -> Result<impl IntoResponse, Failure> {
    let stage = match shown.stage.as_deref() {
        Some("waiting") => Some(JobStage::Waiting),
        Some("running") => Some(JobStage::Running),
        Some("discarded") => Some(JobStage::Discarded),
        _ => None,
    };
    let kind = shown.kind.clone().filter(|kind| !kind.is_empty());
    let runs = HistoryFilter { kind: kind.clone(), limit: Some(ROWS), ..HistoryFilter::default() };
    let after = shown.after.map(JobId);
    let filter = JobFilter { stage, kind, after, limit: Some(ROWS), ..JobFilter::default() };
    let (jobs, runs) = (queue.list_async(&filter).await?, queue.history_async(&runs).await?);
    let schedules = match PostgresQueue::of(&queue) {
        Some(queue) => queue.schedules().list().call_async().await?,
        // An in-memory queue has none.
        None => Vec::new(),
    };
    let page = page::page(&shown, &jobs, &runs, &schedules);
    Ok(([(header::CACHE_CONTROL, "no-store")], Html(page)))
}

async fn act(
    State(queue): State<Arc<JobQueue>>,
    headers: HeaderMap,
    Form(Button { verb, id, name }): Form<Button>,
) -> Result<Redirect, Failure> {
    // Browsers say it; a program that is none has not been led here by another site.
    if headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin") {
        return Err(Failure::OtherSite);
    }
    // A queue in memory has no schedules that a button could name.
    let rows = PostgresQueue::of(&queue);
    let schedules = rows.as_ref().map(PostgresQueue::schedules);
    // Whatever a verb has found, the page that follows shows how things are.
    match (verb.as_str(), id.map(JobId), name.as_deref().zip(schedules)) {
        ("retry", Some(id), _) => drop(queue.retry_async(id).await?),
        ("discard", Some(id), _) => drop(queue.discard_async(id).await?),
        ("remove", Some(id), _) => drop(queue.remove_async(id).await?),
        ("run", _, Some((name, schedules))) => drop(schedules.run_now(name).call_async().await?),
        ("pause", _, Some((name, schedules))) => drop(schedules.pause(name).call_async().await?),
        ("resume", _, Some((name, schedules))) => drop(schedules.resume(name).call_async().await?),
        _ => return Err(Failure::NoSuchButton),
    }
    Ok(Redirect::to("/"))
}

enum Failure {
    OtherSite,
    NoSuchButton,
    Queue(QueueError),
}

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Self {
        Self::Queue(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::OtherSite => (StatusCode::FORBIDDEN, "of another site").into_response(),
            Self::NoSuchButton => (StatusCode::BAD_REQUEST, "no such button").into_response(),
            Self::Queue(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
        }
    }
}

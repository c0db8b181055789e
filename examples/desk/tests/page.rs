//! The page is asked over HTTP, as a browser asks for it, and its buttons are pressed.

#![allow(
    missing_docs,
    clippy::disallowed_methods,
    reason = "a test waits for a server in real time"
)]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

#[path = "../../../tests/behaviour/support/patience.rs"]
mod patience;

use desk::desk;
use patience::eventually;
use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{InMemory, Job, JobError, JobQueue, JobRun, JobState, Jobs};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Probe {}
impl Job for Probe {
    const NAME: &'static str = "<probe>";
}

fn serve(queue: JobQueue) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, desk(queue)).await.unwrap();
        });
    });
    address
}

fn ask(address: SocketAddr, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let form = "content-type: application/x-www-form-urlencoded";
    write!(stream, "{head} HTTP/1.1\r\nhost: desk\r\nconnection: close\r\n{form}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_job_is_seen_and_its_buttons_work() {
    let executor = ScheduledThreadPoolExecutor::new(2);
    let jobs = Jobs::new().on(|run: &JobRun, _: Probe| match run.attempt {
        1 => Err(JobError::new("it's <b>bold</b> & \"wrong\"")),
        _ => Ok(()),
    });
    let jobs = jobs.on_discarded(|_| ());
    let queue = jobs.open(InMemory::on(&executor).history(Duration::from_secs(60))).unwrap();
    let job = queue.now(Probe {}).max_attempts(1).enqueue().unwrap().id;
    eventually("discarded", || matches!(queue.state(job).unwrap(), JobState::Discarded { .. }));
    let address = serve(queue.clone());
    let page = ask(address, "GET /?stage=discarded", "");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("&lt;probe&gt;") && !page.contains("<probe>"), "{page}");
    assert!(page.contains("it&#39;s &lt;b&gt;bold&lt;/b&gt; &amp; &quot;wrong&quot;"), "{page}");
    assert!(page.contains(&format!("name=id value='{job}'")), "{page}");
    let answer = ask(address, "POST /do", &format!("verb=retry&id={job}"));
    assert!(answer.starts_with("HTTP/1.1 303") && answer.contains("location: /\r\n"), "{answer}");
    eventually("it has run", || queue.state(job).unwrap() == JobState::Gone);
    let page = ask(address, "GET /", "");
    assert!(page.contains(">ran<") && page.contains(">discarded<"), "the history: {page}");
    let later = queue.after(Duration::from_secs(600), Probe {}).enqueue().unwrap().id;
    ask(address, "POST /do", &format!("verb=discard&id={later}"));
    assert!(matches!(queue.state(later).unwrap(), JobState::Discarded { .. }));
    ask(address, "POST /do", &format!("verb=remove&id={later}"));
    assert_eq!(queue.state(later).unwrap(), JobState::Gone);
    let elsewhere = "POST /do HTTP/1.1\r\nsec-fetch-site: cross-site\r\nx-rest:";
    let answer = ask(address, elsewhere, &format!("verb=remove&id={later}"));
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(ask(address, "POST /do", "verb=explode&id=1").starts_with("HTTP/1.1 400"));
    assert!(ask(address, "POST /do", "verb=pause&name=x").starts_with("HTTP/1.1 400"));
    assert!(!ask(address, "GET /?stage=%27%3E%3Cscript%3E", "").contains("<script>"));
}

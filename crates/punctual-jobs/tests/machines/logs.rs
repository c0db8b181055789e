//! No payload is in a log: it may have what a program must not write down.

use std::sync::{Mutex, OnceLock};

use punctual::{Grace, ScheduledThreadPoolExecutor};
use punctual_jobs::{Job, JobRun, Jobs};
use serde::{Deserialize, Serialize};

use crate::{
    machine::postgres,
    support::{
        LONG, receive,
        replica::{Orders, Replica, say},
        server::Server,
    },
};

#[derive(Serialize, Deserialize)]
struct Secret {
    text: String,
}

impl Job for Secret {
    const NAME: &'static str = "secret";
}

struct Lines(Mutex<Vec<String>>);

impl log::Log for Lines {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        self.0.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

/// The role: a machine that logs all there is to log, in a process of its own.
#[test]
fn machine() {
    let Some(orders) = Orders::of("logs::machine") else { return };
    static LINES: OnceLock<Lines> = OnceLock::new();
    let lines = LINES.get_or_init(|| Lines(Mutex::default()));
    log::set_logger(lines).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (tell, told) = std::sync::mpsc::channel();
    let jobs = Jobs::new().on(move |_: &JobRun, job: Secret| {
        tell.send(job.text)?;
        Ok(())
    });
    let queue = jobs.open(postgres(&executor, orders.text("url"))).unwrap();
    let secret = "do not write this down";
    queue.now(Secret { text: secret.to_owned() }).key("a key").enqueue().unwrap();
    assert_eq!(receive(&told, "it runs"), secret);
    queue.shutdown_within(Grace::patience(LONG).then(LONG)).unwrap();
    let lines = lines.0.lock().unwrap();
    let with = |text: &str| lines.iter().filter(|line| line.contains(text)).count() as i64;
    say("logged", &[lines.len() as i64, with(secret)]);
}

#[test]
fn no_payload_is_in_a_log() {
    let server = Server::start();
    let orders = format!("url={}", server.url());
    let mut machine = Replica::start("logs::machine", 0, &orders, 0);
    let logged = machine.wait_for("logged");
    assert!(logged[0] > 0, "something is logged");
    assert_eq!(logged[1], 0);
}

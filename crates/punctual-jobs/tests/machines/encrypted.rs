//! A server that accepts nothing but encrypted connections.

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{Jobs, OpenError};

use crate::{
    kinds::Work,
    machine::{drained, postgres, sender},
    support::{
        opened,
        replica::{Orders, Replica, say, wait_for_the_end},
        server::Server,
    },
};

/// The role: a machine that sends a job and runs it. Only its process has the certificate.
#[test]
fn machine() {
    let Some(orders) = Orders::of("encrypted::machine") else { return };
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = opened(|| {
        let jobs = Jobs::new().on(|_: &punctual_jobs::JobRun, job: Work| {
            say("ran", &[job.number]);
            Ok(())
        });
        jobs.open(postgres(&executor, orders.text("url")))
    });
    queue.now(Work { number: 7, millis: 0 }).enqueue().unwrap();
    wait_for_the_end();
}

#[test]
fn all_connections_of_a_queue_are_encrypted() {
    let mut server = Server::start();
    let (address, shown) = server.encrypt();
    let orders = format!("url={address} sslmode=require");
    let shown = shown.to_str().unwrap();
    let mut machine = Replica::start_with("encrypted::machine", &orders, ("PGSSLROOTCERT", shown));
    assert_eq!(machine.wait_for("ran"), [7]);
    drained(&server);
    let from = "from pg_stat_ssl natural join pg_stat_activity where client_addr is not null";
    // For the verbs, the worker and the heartbeat, and the one that listens.
    assert_eq!(server.value(&format!("select count(*) >= 4 {from}")), "t");
    assert_eq!(server.value(&format!("select count(*) {from} and not ssl")), "0");
    machine.end();
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused() {
    let mut server = Server::start();
    let (address, _) = server.encrypt();
    let executor = ScheduledThreadPoolExecutor::new(1);
    let url = format!("{address} sslmode=require");
    let error = Jobs::new().open(postgres(&executor, &url)).unwrap_err();
    assert!(matches!(error, OpenError::Server(_)), "{error}");
    // The socket of the server is still as it was.
    drop(sender(&executor, &server.url()));
}

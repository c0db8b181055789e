//! G6: through PgBouncer, and how a pooler is found out.

use punctual_jobs::pooler::shares_backends;
use tokio_postgres::NoTls;

use crate::{
    frozen::freeze_the_holder,
    support::{block_on, for_some, pgbouncer::PgBouncer, server::Server, times},
    ticks::{SECOND, each_tick_ran_once, three_with_wrong_clocks},
};

/// G6
#[test]
fn the_gate_works_through_a_pooler_in_transaction_mode() {
    let server = Server::start();
    // Fewer backends than replicas, so that they are shared.
    let pooler = PgBouncer::start(&server, "transaction", 2);
    let at_least = 10 * times(12) as usize;
    for_some("none is missing", &[1, 2, 3, 4], |attempt| {
        let (url, name) = (pooler.url().to_owned(), format!("pooled {attempt}"));
        let (_, runs) = three_with_wrong_clocks(url, &name, at_least);
        each_tick_ran_once(&runs, SECOND / 2, at_least)
    });
    freeze_the_holder(&server, pooler.url().to_owned(), "pooled frozen");
}

fn is_shared(url: &str) -> bool {
    let config = url.parse().unwrap();
    block_on(shares_backends(&config, NoTls)).unwrap()
}

/// G6
#[test]
fn transaction_pooling_is_found_out_and_session_pooling_is_not_taken_for_it() {
    let server = Server::start();
    assert!(!is_shared(&server.url()), "no pooler");
    let session = PgBouncer::start(&server, "session", 4);
    assert!(!is_shared(session.url()), "session mode");
    drop(session);
    let transaction = PgBouncer::start(&server, "transaction", 4);
    for _ in 0..20 {
        assert!(is_shared(transaction.url()), "transaction mode");
    }
    drop(transaction);
    let statement = PgBouncer::start(&server, "statement", 4);
    assert!(is_shared(statement.url()), "statement mode");
}

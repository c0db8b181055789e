//! Opening a gate: settings, migrations, and what is wrong with them.

use std::{sync::mpsc, thread, time::Duration};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::gate::{Gate, GateErrorKind};

use crate::support::{LONG, Patience, block_on, opened, receive, server::Server, wait_until};

/// Opens eight gates at once, in five schemas.
fn open_at_once(server: &Server) {
    for round in 0..5 {
        let open = |_| {
            let (url, schema) = (server.url(), format!("at_once_{round}"));
            thread::spawn(move || drop(opened(|| Gate::postgres(&url).schema(&schema).open())))
        };
        let all: Vec<_> = (0..8).map(open).collect();
        for one in all {
            one.join().unwrap();
        }
    }
}

#[test]
fn replicas_that_open_at_once_migrate_once() {
    let server = Server::start();
    open_at_once(&server);
    let tables = "select count(*) from pg_tables where tablename = 'gate'";
    assert_eq!(server.value(tables), "5");
}

#[test]
fn a_role_without_rights_to_create_uses_what_is_there() {
    let server = Server::start();
    let limited = server.url().replace("user=punctual", "user=limited");
    server.sql("create role limited login");
    let error = Gate::postgres(&limited).open().unwrap_err();
    assert_eq!(error.kind(), GateErrorKind::Database);
    assert!(error.to_string().contains("permission denied"), "{error}");
    drop(opened(|| Gate::postgres(server.url()).open()));
    server.sql(
        "grant usage on schema punctual to limited;
         grant select, insert, update on punctual.gate to limited;
         grant usage on sequence punctual.gate_fence to limited;
         grant select on punctual.gate_version to limited",
    );
    let gate = opened(|| Gate::postgres(&limited).open());
    opened(|| gate.migrate());
    let executor = ScheduledThreadPoolExecutor::new(1);
    let (sender, ran) = mpsc::channel();
    let trigger = punctual_jobs::aligned(Duration::from_millis(50));
    let named = gate.for_name("limited").unwrap();
    let body = move || sender.send(()).unwrap_or(());
    let task = executor.task().gate(named).repeat(trigger, body).unwrap();
    receive(&ran, "a run");
    task.cancel();
}

#[test]
fn an_older_program_leaves_the_tables_of_a_newer_one_alone() {
    let server = Server::start();
    let old = opened(|| Gate::postgres(server.url()).open());
    server.sql(
        "create or replace function punctual.guard(of_name text, of_fence bigint) returns void
         language sql as 'select 2';
         insert into punctual.gate_version (version) values (2)",
    );
    let error = Gate::postgres(server.url()).open().unwrap_err();
    assert_eq!(error.kind(), GateErrorKind::NewerTables);
    assert!(error.to_string().contains("their version is 2"), "{error}");
    assert_eq!(old.migrate().unwrap_err().kind(), GateErrorKind::NewerTables);
    let body = "select prosrc from pg_proc where oid = 'punctual.guard'::regproc";
    assert_eq!(server.value(body), "select 2", "the newer function stands");
}

#[test]
fn a_database_of_serializable_transactions_is_migrated_once() {
    let server = Server::start();
    server.sql("alter database postgres set default_transaction_isolation = 'serializable'");
    open_at_once(&server);
}

#[test]
fn settings_that_are_none_are_refused_with_words() {
    let kind = |builder: punctual_jobs::gate::GateBuilder| {
        let error = builder.open().unwrap_err();
        assert!(!error.to_string().is_empty());
        error.kind()
    };
    let gate = || Gate::postgres("host=/nowhere user=x");
    let second = Duration::from_secs(1);
    assert_eq!(kind(Gate::postgres("host=/nowhere prot=x")), GateErrorKind::BadUrl);
    for schema in ["", "Punctual", "1st", "a;b", "a\"b", &"a".repeat(64)] {
        assert_eq!(kind(gate().schema(schema)), GateErrorKind::BadSchema, "{schema}");
    }
    for lease in [Duration::ZERO, second / 10, Duration::MAX] {
        assert_eq!(kind(gate().lease(lease)), GateErrorKind::BadLease, "{lease:?}");
    }
    assert_eq!(kind(gate().request_timeout(Duration::ZERO)), GateErrorKind::BadLease);
    assert_eq!(kind(gate().lease(second).request_timeout(2 * second)), GateErrorKind::BadLease);
}

#[test]
fn names_that_are_none_are_refused() {
    let gate = opened(|| Gate::postgres(Server::shared().url()).open());
    for name in [String::new(), "a\0b".to_owned(), "ä".repeat(201)] {
        assert_eq!(gate.for_name(name).unwrap_err().kind(), GateErrorKind::BadName);
    }
    assert_eq!(gate.for_name("ä".repeat(200)).unwrap().name().chars().count(), 200);
}

#[test]
fn a_gate_that_is_dropped_has_told_all_ends_and_leaves_no_connection() {
    let server = Server::start();
    let connections =
        "select count(*) from pg_stat_activity where application_name = 'punctual gate'";
    for round in 1..20 {
        let gate = opened(|| Gate::postgres(server.url()).lease(LONG).request_timeout(LONG).open());
        let executor = ScheduledThreadPoolExecutor::new(1);
        let named = gate.for_name("dropped").unwrap();
        let trigger = crate::rows::at_once(std::time::SystemTime::now());
        executor.task().gate(named).repeat(trigger, || {}).unwrap().join().unwrap();
        executor.close().unwrap();
        drop(gate);
        let row = server.sql("select fence, done from punctual.gate");
        assert_eq!(row, [[round.to_string(), "t".to_owned()]]);
    }
    wait_until("the backends have ended", || server.value(connections) == "0");
}

#[test]
fn a_connection_that_is_terminated_is_made_again() {
    let server = Server::start();
    let gate = opened(|| Gate::postgres(server.url()).open());
    for _ in 0..20 {
        server.sql(
            "select pg_terminate_backend(pid) from pg_stat_activity
              where application_name = 'punctual gate'",
        );
        wait_until("there is a connection", || gate.migrate().is_ok());
    }
    let count = "select count(*) from pg_stat_activity where application_name = 'punctual gate'";
    wait_until("there is one connection", || server.value(count) == "1");
}

#[test]
fn backends_do_not_pile_up_behind_a_locked_table() {
    let server = Server::start();
    let limit = Duration::from_millis(200);
    let gate = opened(|| Gate::postgres(server.url()).request_timeout(limit).open());
    let executor = ScheduledThreadPoolExecutor::new(1);
    let named = gate.for_name("behind").unwrap();
    let trigger = punctual_jobs::aligned(Duration::from_millis(50));
    block_on(async {
        let client = server.connect().await;
        let lock = "begin; lock table punctual.gate in access exclusive mode";
        client.batch_execute(lock).await.unwrap();
        let task = executor.task().gate(named).repeat(trigger, || {}).unwrap();
        wait_until("it was tried again and again", || gate.statistics().unreachable >= 8);
        let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
        let mut patience = Patience::new();
        loop {
            let waiting = crate::support::server::rows(&client, waiting).await.unwrap();
            let waiting: i64 = waiting[0][0].parse().unwrap();
            if waiting <= 3 {
                break;
            }
            patience.go_on(format!("{waiting} backends wait"));
        }
        client.batch_execute("rollback").await.unwrap();
        wait_until("ticks go on", || gate.statistics().granted > 0);
        task.cancel();
    });
}

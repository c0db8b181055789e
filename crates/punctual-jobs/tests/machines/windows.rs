//! Limits for a window of time over machines that are killed and frozen, by a ledger that the server keeps.

use std::time::{Duration, Instant};

use punctual::ScheduledThreadPoolExecutor;
use punctual_jobs::{JobLimit, JobRun, Jobs};

use crate::{
    kinds::{Held, METERED, Metered},
    limits::trouble,
    machine::{drained, postgres, sender, start_that_polls},
    size,
    support::{opened, server::Server, wait_until},
};

/// Has the server write down when each attempt has taken its token: the moment of its claim, by which the bucket counts.
const LEDGER: &str = "
create table public.begun (at timestamptz, key text);
create function public.note() returns trigger language plpgsql as $$ begin
  if new.claim is distinct from old.claim and new.claim is not null then
    insert into public.begun values (new.claimed_at, new.limit_key);
  end if;
  return null;
end $$;
create trigger noted after update on punctual.job for each row execute function public.note()";

/// Returns when attempts of a limit key have begun, in microseconds.
fn begun(server: &Server, key: &str) -> Vec<i64> {
    let all = "select (extract(epoch from at) * 1000000)::bigint from public.begun";
    let rows = server.sql(&format!("{all} where key = '{key}' order by at"));
    rows.iter().map(|row| row[0].parse().unwrap()).collect()
}

/// What a token bucket promises: of m + n attempts in a row the last is m + 1 gaps at least after the first. So no window of
/// n gaps that does not contain its end has more than 2n - 1.
fn holds(moments: &[i64], burst: usize, gap: i64) {
    for (place, first) in moments.iter().enumerate() {
        for (more, last) in moments[place..].iter().enumerate().skip(burst) {
            let least = (more - burst + 1) as i64 * gap;
            assert!(last - first >= least, "{more} after the first in {} us", last - first);
        }
    }
    let window = burst as i64 * gap;
    let most = moments
        .iter()
        .map(|from| moments.iter().filter(|at| (*from..from + window).contains(at)).count());
    let most = most.max().unwrap();
    println!("{} attempts, {most} in a window at most", moments.len());
    assert!((burst..2 * burst).contains(&most), "{most}");
}

fn enqueue(server: &Server, jobs: i64, keys: i64) {
    let executor = ScheduledThreadPoolExecutor::new(1);
    let queue = sender(&executor, &server.url());
    for number in 0..jobs {
        let job = queue.now(Metered { number }).max_attempts(100);
        let key = number % keys;
        let job = if key > 0 { job.limit_key(key.to_string()) } else { job };
        let job = if number % 7 == 0 { job.ordering_key((number % 3).to_string()) } else { job };
        job.enqueue().unwrap();
    }
}

#[test]
fn a_window_holds_over_machines_that_are_killed_and_frozen() {
    let server = Server::start();
    let ((jobs, rounds), (burst, millis)) = (size((300, 2), (3000, 20)), METERED);
    enqueue(&server, 0, 3);
    server.sql(LEDGER);
    trouble(&server, "metered", || enqueue(&server, jobs / rounds, 3));
    for key in ["", "1", "2"] {
        holds(&begun(&server, key), burst as usize, millis as i64 * 1000);
    }
}

/// Three machines use the rate up: none waits for its poll, which is of an hour.
#[test]
fn a_window_is_used_up_by_several_machines() {
    let server = Server::start();
    let (jobs, (burst, millis)) = (size(60, 600), METERED);
    let hour = Duration::from_secs(3600);
    let machines: Vec<_> = (0..3).map(|number| start_that_polls(&server, number, hour)).collect();
    server.sql(LEDGER);
    let since = Instant::now();
    enqueue(&server, jobs, 1);
    drained(&server);
    let took = since.elapsed();
    let moments = begun(&server, "");
    holds(&moments, burst as usize, millis as i64 * 1000);
    let least = Duration::from_millis(millis) * (moments.len() as u32 - burst);
    println!("{} attempts, one each {millis} ms: {took:?}, at least {least:?}", moments.len());
    assert!(took >= least - Duration::from_millis(5), "{took:?}");
    drop(machines);
}

/// With a poll of an hour: the machine looks when there is a token, and an idle kind leaves nothing behind.
#[test]
fn a_machine_looks_again_when_there_is_a_token() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let (gap, jobs) = (Duration::from_millis(200), 6);
    let limit = JobLimit::in_window(1, gap);
    let queue = opened(|| {
        let kinds = Jobs::new().on(|_: &JobRun, _: Held| Ok(())).limit::<Held>(limit);
        kinds.open(postgres(&executor, &server.url()).poll(Duration::from_secs(3600)))
    });
    let since = Instant::now();
    for number in 0..jobs {
        queue.now(Held { number, millis: 0 }).enqueue().unwrap();
    }
    wait_until("all", || server.value("select count(*) from punctual.job") == "0");
    let took = since.elapsed();
    println!("{jobs} jobs, one each {gap:?}: {took:?}");
    assert!(took + Duration::from_millis(5) >= gap * 5, "{took:?}");
    // What has been full for a minute is removed.
    server.sql("update punctual.job_bucket set tat = tat - interval '5 minutes'");
    wait_until("no bucket is left", || {
        server.value("select count(*) from punctual.job_bucket") == "0"
    });
}

/// Another connection has locked the bucket: nothing waits for it, and other kinds go on.
#[test]
fn a_bucket_that_is_locked_holds_up_no_other_kind() {
    let server = Server::start();
    let executor = ScheduledThreadPoolExecutor::new(2);
    let limit = JobLimit::in_window(5, Duration::from_secs(1));
    let kinds = Jobs::new()
        .on(|_: &JobRun, _: Held| Ok(()))
        .on(|_: &JobRun, _: Metered| Ok(()))
        .limit::<Held>(limit);
    let queue = kinds.open(postgres(&executor, &server.url())).unwrap();
    let left = |kind: &str| {
        server.value(&format!("select count(*) from punctual.job where name = '{kind}'"))
    };
    queue.now(Held { number: 1, millis: 0 }).enqueue().unwrap();
    wait_until("the first", || left("held") == "0");
    crate::support::block_on(async {
        let mut client = server.connect().await;
        let transaction = client.transaction().await.unwrap();
        transaction.batch_execute("select from punctual.job_bucket for update").await.unwrap();
        drop(queue.now(Held { number: 2, millis: 0 }).enqueue_async());
        drop(queue.now(Metered { number: 1 }).enqueue_async());
        // In another thread, because this one has the transaction.
        std::thread::scope(|scope| {
            scope.spawn(|| wait_until("the other kind", || left("metered") == "0"));
        });
        transaction.rollback().await.unwrap();
    });
    wait_until("the second", || left("held") == "0");
}

/// The server's clock is set back by an hour: what the bucket says is not believed for long.
#[test]
fn a_server_clock_that_is_set_back_leaves_a_rate() {
    let server = Server::start_with_clock();
    server.set_clock(3600);
    let executor = ScheduledThreadPoolExecutor::new(2);
    let limit = JobLimit::in_window(1, Duration::from_millis(100));
    let kinds = Jobs::new().on(|_: &JobRun, _: Held| Ok(())).limit::<Held>(limit);
    let queue = kinds.open(postgres(&executor, &server.url())).unwrap();
    let run = |jobs| {
        for number in 0..jobs {
            queue.now(Held { number, millis: 0 }).enqueue().unwrap();
        }
        wait_until("all", || server.value("select count(*) from punctual.job") == "0");
    };
    run(3);
    server.set_clock(0);
    run(3);
}

//! A transaction that stays open, and the speed of the queue on PostgreSQL beside it.
//!
//! ```text
//! cargo bench -p punctual-jobs --features postgres --bench pinned [-- SECONDS MACHINES SLOTS ENDED WHAT]
//! ```
//!
//! It starts two servers of its own, as the tests do. The machines are queues of this process, each with an executor of its own, and
//! the handlers do nothing. On one server a `REPEATABLE READ` transaction is open from the beginning to the end, so that server
//! removes no row that has ended. The machines of the two servers work in turns, a tenth of SECONDS at a time, and a kind is
//! paused meanwhile: what else the computer does is the same for both. A backlog is kept, so that machines whose turn it is are busy.
//! Each turn prints a line: the jobs per second, how many jobs have ended, and the size of the table and its indexes. ENDED is
//! the number of rows that have ended before, so that a short run can show what a long one comes to: ten minutes at a
//! thousand jobs per second are 600,000. WHAT is `limited` for a kind with `at_once(64)`, which does not bind, `binding`
//! for one with `at_once(6)`, `keyed` for one with `at_once(1)` for each of eight limit keys, or `ordered` for jobs of a
//! thousand ordering keys; without it the jobs are plain.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    missing_docs,
    reason = "a program that measures, and that ends when something fails"
)]

mod common;

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use common::{Machines, Numbers, Plan, Server, median};
use punctual_jobs::JobLimit;

/// How many jobs wait at least, and how many are added at a time.
const BACKLOG: usize = 10_000;

/// Which jobs there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Plain,
    Limited,
    Binding,
    Keyed,
    Ordered,
}

impl What {
    fn read() -> Self {
        let words = [
            ("limited", Self::Limited),
            ("binding", Self::Binding),
            ("keyed", Self::Keyed),
            ("ordered", Self::Ordered),
        ];
        let is_said = |word: &str| std::env::args().any(|it| it == word);
        words.into_iter().find(|(word, _)| is_said(word)).map_or(Self::Plain, |(_, what)| what)
    }

    fn limit(self) -> Option<JobLimit> {
        match self {
            Self::Limited => Some(JobLimit::at_once(64)),
            Self::Binding => Some(JobLimit::at_once(6)),
            Self::Keyed => Some(JobLimit::at_once(1).for_each_key()),
            Self::Plain | Self::Ordered => None,
        }
    }

    /// Returns the statement that stores so many jobs for this moment.
    fn insert(self, count: usize, moment: &str) -> String {
        let (ordering_key, limit_key) = match self {
            Self::Ordered => ("(n % 1000)::text", "''"),
            Self::Keyed => ("null", "(n % 8)::text"),
            _ => ("null", "''"),
        };
        let due = matches!(self, Self::Ordered | Self::Keyed);
        format!(
            "insert into punctual.job (name, payload, run_at, ordering_key, limit_key, due)
               select 'nothing', '{{}}', {moment}, {ordering_key}, {limit_key}, {due} from generate_series(1, {count}) n;"
        )
    }
}

fn main() {
    let mut numbers = Numbers::read();
    let seconds = numbers.next(600);
    let plan = Plan::new(numbers.next(3), numbers.next(4));
    let ended = numbers.next(0);
    let what = What::read();
    let plan = Plan { limit: what.limit(), ..plan };
    let turn = Duration::from_secs(seconds as u64) / 10;
    println!(
        "{} machines of {} slots, {seconds} s without and with the transaction",
        plan.machines, plan.slots
    );
    let open = |name| Round::open(name, plan, what);
    let (mut free, mut pinned) = (open("free"), open("pinned"));
    let _pin = pin(&pinned.server, ended, what);
    let begun = Instant::now();
    let mut ratios = Vec::new();
    for _ in 0..10 {
        let speeds = [&mut free, &mut pinned].map(|round| round.go_on(turn));
        ratios.push(speeds[1] / speeds[0]);
    }
    println!("pinned / free, over {:.0?}: {ratios:.2?}", begun.elapsed());
    println!("median {:.2}", median(ratios));
    free.machines.shut_down();
    pinned.machines.shut_down();
}

struct Round {
    name: &'static str,
    what: What,
    machines: Machines,
    added: usize,
    busy: Duration,
    server: Server,
}

impl Round {
    fn open(name: &'static str, plan: Plan, what: What) -> Self {
        let server = Server::start();
        let machines = Machines::open(&server, plan);
        machines.queue().pause_kind("nothing", None).unwrap();
        Self { name, what, machines, added: 0, busy: Duration::ZERO, server }
    }

    /// Lets the machines work for so long, and returns the jobs per second.
    fn go_on(&mut self, span: Duration) -> f64 {
        self.machines.queue().resume_kind("nothing").unwrap();
        let (begun, before) = (Instant::now(), self.machines.runs());
        while begun.elapsed() < span {
            if self.machines.runs() + BACKLOG > self.added {
                let insert = self.what.insert(BACKLOG, "now()");
                self.server.sql(&format!("{insert} notify punctual"));
                self.added += BACKLOG;
            }
            sleep(Duration::from_millis(10));
        }
        let ended = self.machines.runs();
        let speed = (ended - before) as f64 / begun.elapsed().as_secs_f64();
        self.machines.queue().pause_kind("nothing", None).unwrap();
        self.busy += begun.elapsed();
        let size = "select pg_size_pretty(pg_total_relation_size('punctual.job'))";
        let (size, seconds) = (self.server.value(size), self.busy.as_secs());
        println!(
            "{:>6} {seconds:>5} s: {speed:>6.0} jobs/s, {ended:>8} ended, {size:>8}",
            self.name
        );
        speed
    }
}

/// Opens the transaction, beside which so many rows end at once, as those of jobs that were claimed and have run. The index that
/// refuses a second claim of an ordering key is made anew, because each of these claims would look at all those before it.
fn pin(
    server: &Server,
    ended: usize,
    what: What,
) -> (tokio::runtime::Runtime, tokio_postgres::Client) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(server.connect());
    let begin = "begin transaction isolation level repeatable read; select now()";
    runtime.block_on(client.batch_execute(begin)).unwrap();
    let insert = what.insert(ended, "now() - interval '1 hour'");
    let limit = what.limit().map_or("", |_| ", limit_claim = id");
    // In one transaction, so that no machine sees them.
    server.sql(&format!(
        "do $$ declare
           turn text := pg_get_indexdef('punctual.job_turn'::regclass);
         begin
           drop index punctual.job_turn;
           {insert}
           update punctual.job set claim = id, worker = 'nobody', attempts = 1 {limit} where run_at = now() - interval '1 hour';
           delete from punctual.job where run_at = now() - interval '1 hour';
           execute turn;
           perform setval('punctual.job_claim', {ended} + 1);
         end $$"
    ));
    (runtime, client)
}

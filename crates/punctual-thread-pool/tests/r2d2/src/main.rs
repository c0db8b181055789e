//! r2d2 on the drop-in, which it takes for `scheduled-thread-pool`: eight threads write rows to a SQLite file
//! through connections of a pool, while a reaper throws idle connections away every few milliseconds, and
//! threads leave broken ones. Each connection is replaced by a job on the thread pool.
//!
//! Found afterwards: every row that was written, once; and as many threads and file descriptors as before.
//!
//! The rate of r2d2's own reaper cannot be set from outside, and is 30 seconds. So a second one, at three
//! milliseconds, is a periodic job on the same thread pool.

#![allow(clippy::disallowed_methods, reason = "a program beside the core, on the system's clock")]

#[path = "../../../../../tests/behaviour/support/patience.rs"]
mod patience;

use std::{
    error::Error,
    fs,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use patience::Patience;
use r2d2::{ManageConnection, Pool};
use rusqlite::Connection;
use scheduled_thread_pool::ScheduledThreadPool;

const THREADS: usize = 8;
const REAPER: Duration = Duration::from_millis(3);
/// A connection is left broken after every so many rows.
const ROWS_TO_BREAK: usize = 16;

type Failure = Box<dyn Error + Send + Sync>;

/// Opens connections to one file.
struct Sqlite {
    path: PathBuf,
    opened: Arc<AtomicUsize>,
}

/// A connection, which its user may declare broken.
struct Breakable {
    connection: Connection,
    is_broken: bool,
}

impl ManageConnection for Sqlite {
    type Connection = Breakable;
    type Error = rusqlite::Error;

    fn connect(&self) -> rusqlite::Result<Breakable> {
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(Duration::from_secs(60))?;
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;")?;
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(Breakable { connection, is_broken: false })
    }

    fn is_valid(&self, connection: &mut Breakable) -> rusqlite::Result<()> {
        connection.connection.execute_batch("SELECT 1")
    }

    fn has_broken(&self, connection: &mut Breakable) -> bool {
        connection.is_broken
    }
}

/// The things that the process has of the kernel: threads, and file descriptors.
#[derive(Debug, PartialEq, Eq)]
struct Possessions {
    threads: usize,
    descriptors: usize,
}

impl Possessions {
    fn count() -> Result<Self, Failure> {
        let entries = |path| Ok::<_, Failure>(fs::read_dir(path)?.count());
        Ok(Self { threads: entries("/proc/self/task")?, descriptors: entries("/proc/self/fd")? })
    }
}

/// Writes rows until the time is up, and so many that a connection is broken. Returns how many.
fn write(pool: &Pool<Sqlite>, writer: usize, until: Instant) -> Result<usize, Failure> {
    let mut rows = 0;
    while Instant::now() < until || rows <= ROWS_TO_BREAK {
        let mut connection = pool.get()?;
        let insert = "INSERT INTO row (writer, number) VALUES (?1, ?2)";
        connection.connection.prepare_cached(insert)?.execute((writer as i64, rows as i64))?;
        rows += 1;
        connection.is_broken = rows % ROWS_TO_BREAK == 0;
    }
    Ok(rows)
}

/// Asserts that the rows of each writer are those that it has written: none is missing, and by the primary
/// key none is there twice.
fn check_rows(path: &PathBuf, written: &[usize]) -> Result<(), Failure> {
    let connection = Connection::open(path)?;
    let mut found = connection.prepare(
        "SELECT count(*), coalesce(min(number), 0), coalesce(max(number) + 1, 0) FROM row WHERE writer = ?1",
    )?;
    for (writer, rows) in written.iter().enumerate() {
        let counts: (i64, i64, i64) =
            found.query_row([writer as i64], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let rows = i64::try_from(*rows)?;
        if counts != (rows, 0, rows) {
            return Err(format!(
                "writer {writer} has written {rows} rows, and {counts:?} are there"
            )
            .into());
        }
    }
    Ok(())
}

/// Writes for that long, from all threads.
fn load(path: PathBuf, opened: &Arc<AtomicUsize>, span: Duration) -> Result<Vec<usize>, Failure> {
    let threads = Arc::new(
        ScheduledThreadPool::builder().num_threads(3).thread_name_pattern("r2d2-worker-{}").build(),
    );
    let manager = Sqlite { path, opened: Arc::clone(opened) };
    let pool = Pool::builder()
        .max_size(THREADS as u32)
        .min_idle(Some(2))
        .thread_pool(Arc::clone(&threads))
        .build(manager)?;
    pool.get()?.connection.execute_batch(
        "CREATE TABLE row (writer INTEGER, number INTEGER, PRIMARY KEY (writer, number)) WITHOUT ROWID",
    )?;
    let idle = pool.clone();
    let reaper = threads.execute_at_fixed_rate(REAPER, REAPER, move || {
        if let Some(mut connection) = idle.try_get() {
            connection.is_broken = true;
        }
    });
    let until = Instant::now() + span;
    let written = thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|writer| (writer, pool.clone()))
            .map(|(writer, pool)| scope.spawn(move || write(&pool, writer, until)))
            .collect();
        let joined =
            writers.into_iter().map(|writer| writer.join().map_err(|_| "a writer panicked")?);
        joined.collect()
    });
    reaper.cancel();
    written
}

fn run(span: Duration) -> Result<(), Failure> {
    let in_use = std::any::type_name::<ScheduledThreadPool>();
    if !in_use.starts_with("punctual_thread_pool::") {
        return Err(format!("r2d2 is on {in_use}, and not on the drop-in").into());
    }
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("rows.sqlite");
    let before = Possessions::count()?;
    let opened = Arc::new(AtomicUsize::new(0));
    let written = load(path.clone(), &opened, span)?;
    // The threads end by themselves.
    let mut patience = Patience::new();
    while Possessions::count()? != before {
        if !patience.lasts() {
            return Err(format!("{before:?} became {:?}", Possessions::count()?).into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    check_rows(&path, &written)?;
    let (rows, opened) = (written.iter().sum::<usize>(), opened.load(Ordering::Relaxed));
    if rows < THREADS || opened <= THREADS {
        return Err(format!("{rows} rows through {opened} connections are no load").into());
    }
    println!(
        "r2d2 on the drop-in: {rows} rows through {opened} connections, nothing lost, nothing left"
    );
    Ok(())
}

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).and_then(|argument| argument.parse().ok()).unwrap_or(3);
    match run(Duration::from_secs(seconds)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

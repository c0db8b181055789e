//! The bodies of the schedules: closures that run on an executor.

use std::{
    collections::HashMap,
    error::Error,
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use punctual::{CancellationToken, Handle, with_context_once};

/// What a body returns if it fails: any error. Restate runs it again, a few times.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// A run of a body.
#[derive(Clone, Debug)]
pub struct Run {
    /// The key of the tick, the same in each run for it. An effect that is told this key can refuse a repetition.
    pub key: String,
    /// The moment of the tick, in seconds since 1970.
    pub moment: u64,
}

impl Run {
    /// Returns the moment of the tick.
    pub fn at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.moment)
    }
}

type Body = dyn Fn(&Run, &CancellationToken) -> Result<(), BodyError> + Send + Sync;

/// The bodies by their names, and the executor on which they run.
pub struct Bodies {
    handle: Handle,
    by_name: HashMap<String, std::sync::Arc<Body>>,
}

impl Bodies {
    /// Returns no bodies, to run on this executor.
    pub fn on(handle: &Handle) -> Self {
        Self { handle: handle.clone(), by_name: HashMap::new() }
    }

    /// Adds a body. Its token is cancelled when its run counts no more: the server has gone, or the service shuts down.
    #[must_use]
    pub fn with(
        mut self,
        name: &str,
        body: impl Fn(&Run, &CancellationToken) -> Result<(), BodyError> + Send + Sync + 'static,
    ) -> Self {
        self.by_name.insert(name.to_owned(), std::sync::Arc::new(body));
        self
    }

    /// Returns `true` if there is a body of that name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Runs the body as a task that has the key of the tick as its name, and waits for its end. Restate drops this future when
    /// the connection breaks, and then tries again: the guard takes the first run out, or asks it to stop.
    pub(crate) async fn run(&self, name: &str, run: Run) -> Result<(), BodyError> {
        let body = self.by_name.get(name).cloned().ok_or_else(|| format!("no body {name:?}"))?;
        let task = self.handle.task().name(run.key.clone());
        let closure = with_context_once(move |context| body(&run, &context.token()));
        task.submit(closure)?.cancel_and_signal_on_drop().await?
    }

    /// The time of the executor's clock.
    pub(crate) fn now(&self) -> SystemTime {
        self.handle.clock().wall_time()
    }
}

impl fmt::Debug for Bodies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

//! A subscriber for the whole process, which records what is said.
//!
//! A subscriber that is set for one thread does not reach the workers. This one records events and spans with a
//! text that begins with `traced`, and each test looks for its own.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    fmt,
    panic::panic_any,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::Interest,
};
use tracing_core::span::Current;

/// Fields by name, as text; the message is one of them.
#[derive(Clone, Debug, Default)]
pub struct Fields(BTreeMap<&'static str, String>);

impl Fields {
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn contains(&self, text: &str) -> bool {
        self.0.values().any(|value| value == text)
    }

    fn is_traced(&self) -> bool {
        self.0.values().any(|value| value.starts_with("traced"))
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// An event or a new span; the span in which it happened.
#[derive(Clone, Debug)]
pub struct Said {
    pub level: Level,
    pub fields: Fields,
    /// The span that was current; of a span, its parent.
    pub span: Option<Fields>,
    pub is_span: bool,
}

thread_local! {
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// A span that is still held.
struct Open {
    fields: Fields,
    holders: usize,
}

/// The fields of a span when it was closed, and which spans it followed from.
#[derive(Clone, Debug)]
pub struct Closed {
    pub fields: Fields,
    pub follows: Vec<Fields>,
}

#[derive(Default)]
pub struct Collector {
    next_id: AtomicU64,
    open: Mutex<HashMap<u64, Open>>,
    follows: Mutex<HashMap<u64, Vec<Fields>>>,
    metadata: Mutex<HashMap<u64, &'static Metadata<'static>>>,
    closed: Mutex<Vec<Closed>>,
    said: Mutex<Vec<Said>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collector {
    /// The collector of the process.
    pub fn get() -> &'static Self {
        static COLLECTOR: OnceLock<Arc<Collector>> = OnceLock::new();
        COLLECTOR.get_or_init(|| {
            let collector = Arc::new(Self::default());
            let dispatch = tracing::Dispatch::new(Shared(Arc::clone(&collector)));
            tracing::dispatcher::set_global_default(dispatch).expect("there is no other");
            // Other tests run meanwhile. Call sites that they reached for the first time between
            // these two steps were registered as of no interest to any subscriber.
            tracing::callsite::rebuild_interest_cache();
            collector
        })
    }

    /// Everything recorded so far in which this text is the value of a field, of the event or of
    /// its span.
    pub fn said_about(&self, text: &str) -> Vec<Said> {
        let is_about = |said: &&Said| {
            let within = said.span.as_ref();
            said.fields.contains(text) || within.is_some_and(|span| span.contains(text))
        };
        lock(&self.said).iter().filter(is_about).cloned().collect()
    }

    /// The spans that have been closed so far in which this text is the value of a field.
    pub fn closed(&self, text: &str) -> Vec<Closed> {
        lock(&self.closed).iter().filter(|span| span.fields.contains(text)).cloned().collect()
    }

    fn fields_of(&self, id: u64) -> Option<Fields> {
        lock(&self.open).get(&id).map(|open| open.fields.clone())
    }

    fn say(&self, level: Level, fields: Fields, is_span: bool, parent: Option<u64>) {
        let current = parent.or_else(|| ENTERED.with_borrow(|entered| entered.last().copied()));
        let span = current.and_then(|id| self.fields_of(id));
        if fields.is_traced() || span.as_ref().is_some_and(Fields::is_traced) {
            lock(&self.said).push(Said { level, fields, span, is_span });
        }
    }
}

/// The collector as a subscriber. On a thread whose name begins with `throws in` and the name of
/// one of its methods, that method panics.
struct Shared(Arc<Collector>);

fn maybe_throw(method: &str) {
    let current = thread::current();
    let throws_in = current.name().and_then(|name| name.strip_prefix("throws in "));
    if throws_in.is_some_and(|name| name.starts_with(method)) {
        panic_any("a subscriber");
    }
}

impl Subscriber for Shared {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.target() == "punctual" { Interest::sometimes() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        maybe_throw("enabled");
        metadata.target() == "punctual"
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        maybe_throw("new_span");
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.0.open).insert(id, Open { fields: fields.clone(), holders: 1 });
        lock(&self.0.metadata).insert(id, attributes.metadata());
        let parent = attributes.parent().map(Id::into_u64);
        self.0.say(*attributes.metadata().level(), fields, true, parent);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        maybe_throw("record");
        if let Some(open) = lock(&self.0.open).get_mut(&span.into_u64()) {
            values.record(&mut open.fields);
        }
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        maybe_throw("record_follows_from");
        let followed = self.0.fields_of(follows.into_u64()).expect("somebody holds it");
        lock(&self.0.follows).entry(span.into_u64()).or_default().push(followed);
    }

    fn current_span(&self) -> Current {
        maybe_throw("current_span");
        let current = ENTERED.with_borrow(|entered| entered.last().copied());
        current.map_or_else(Current::none, |id| {
            Current::new(Id::from_u64(id), lock(&self.0.metadata)[&id])
        })
    }

    fn clone_span(&self, span: &Id) -> Id {
        maybe_throw("clone_span");
        if let Some(open) = lock(&self.0.open).get_mut(&span.into_u64()) {
            open.holders += 1;
        }
        span.clone()
    }

    fn event(&self, event: &Event<'_>) {
        maybe_throw("event");
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.say(*event.metadata().level(), fields, false, None);
    }

    fn enter(&self, span: &Id) {
        maybe_throw("enter");
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, _: &Id) {
        maybe_throw("exit");
        ENTERED.with_borrow_mut(|entered| entered.pop());
    }

    fn try_close(&self, span: Id) -> bool {
        maybe_throw("try_close");
        let id = span.into_u64();
        let mut open = lock(&self.0.open);
        let Some(held) = open.get_mut(&id) else { return false };
        held.holders -= 1;
        if held.holders > 0 {
            return false;
        }
        let fields = open.remove(&id).expect("it is there").fields;
        let follows = lock(&self.0.follows).remove(&id).unwrap_or_default();
        if fields.is_traced() {
            lock(&self.0.closed).push(Closed { fields, follows });
        }
        true
    }
}

/// The one event with this message, or the one span, among those recorded.
pub fn only<'a>(said: &'a [Said], message: &str) -> &'a Said {
    let is_it = |said: &&Said| said.fields.get("message") == message;
    let found: Vec<_> = said.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{message:?} in {said:#?}");
    found[0]
}

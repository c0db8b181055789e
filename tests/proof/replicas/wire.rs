//! A connection: a stream in memory, and what the two sides say on it.
//!
//! The client is the real one, `tokio-postgres`. Of PostgreSQL's protocol the other side speaks what that client needs:
//! a greeting, a text with parameters in binary, one that is prepared, a script, and notifications. So nothing of the gate or the queue is
//! left out but the socket: parameters are encoded, columns are decoded by their types, and a connection that is
//! cut is one of which the client reads the end.

use std::{
    collections::{HashMap, VecDeque},
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Ends the sleep of a replica's runtime: something was written, or an executor has news.
#[derive(Default)]
pub(super) struct News {
    is_there: AtomicBool,
    has_written: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl News {
    pub(super) fn tell(&self) {
        self.is_there.store(true, Relaxed);
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }

    fn tell_written(&self) {
        self.has_written.store(true, Relaxed);
        self.tell();
    }

    /// Returns whether something was written since the last call.
    pub(super) fn take_written(&self) -> bool {
        self.has_written.swap(false, Relaxed)
    }

    /// Returns whether there was any, and has the waker told of the next.
    pub(super) fn take(&self, waker: &Waker) -> bool {
        *self.waker.lock() = Some(waker.clone());
        self.is_there.swap(false, Relaxed)
    }
}

/// What a client has said.
#[derive(Debug)]
pub(super) enum Said {
    /// A connection begins.
    Hello,
    /// A statement that is to be prepared, and the types of its parameters.
    Prepare(String, Vec<i32>),
    /// One statement with its parameters, and whether it was prepared.
    Ask(String, Parameters, bool),
    /// A prepared statement is needed no more.
    Close,
    /// Several statements, of which no answer is read.
    Script(String),
    /// The connection is of no use any more.
    Goodbye,
}

#[derive(Default)]
struct Pipe {
    written: Vec<u8>,
    has_begun: bool,
    /// The statements that were parsed, by their names: the last one without a name has the empty one.
    texts: HashMap<String, String>,
    arrived: VecDeque<u8>,
    reader: Option<Waker>,
    is_cut: bool,
}

/// The client's end.
pub(crate) struct Wire {
    pipe: Arc<Mutex<Pipe>>,
    news: Arc<News>,
}

/// The server's end.
#[derive(Clone)]
pub(super) struct ServerEnd(Arc<Mutex<Pipe>>);

/// Returns the two ends of a connection. News is told when the client has written.
pub(super) fn connection(news: &Arc<News>) -> (Wire, ServerEnd) {
    let pipe = Arc::new(Mutex::new(Pipe::default()));
    (Wire { pipe: Arc::clone(&pipe), news: Arc::clone(news) }, ServerEnd(pipe))
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut pipe = self.pipe.lock();
        if pipe.arrived.is_empty() && !pipe.is_cut {
            pipe.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let (first, _) = pipe.arrived.as_slices();
        let length = first.len().min(buffer.remaining());
        buffer.put_slice(&first[..length]);
        pipe.arrived.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut pipe = self.pipe.lock();
        if pipe.is_cut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        pipe.written.extend(bytes);
        drop(pipe);
        self.news.tell_written();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.pipe.lock().is_cut = true;
        self.news.tell_written();
    }
}

impl ServerEnd {
    /// Takes what the client has said.
    pub(super) fn hear(&self) -> Vec<Said> {
        let mut pipe = self.0.lock();
        let mut all = Vec::new();
        while let Some(said) = pipe.next() {
            all.extend(said);
        }
        all
    }

    /// Has bytes arrive at the client.
    pub(super) fn deliver(&self, bytes: &[u8]) {
        let mut pipe = self.0.lock();
        pipe.arrived.extend(bytes);
        if let Some(reader) = pipe.reader.take() {
            reader.wake();
        }
    }

    /// Cuts the connection: the client reads its end.
    pub(super) fn cut(&self) {
        let mut pipe = self.0.lock();
        pipe.is_cut = true;
        if let Some(reader) = pipe.reader.take() {
            reader.wake();
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.0.lock().is_cut
    }
}

impl Pipe {
    /// Takes the next message, if it is there as a whole; `Some(None)` for one that says nothing by itself.
    fn next(&mut self) -> Option<Option<Said>> {
        let begin = usize::from(self.has_begun);
        let length = self.written.get(begin..begin + 4)?.try_into().expect("four bytes");
        let end = begin + u32::from_be_bytes(length) as usize;
        if self.written.len() < end {
            return None;
        }
        let rest = self.written.split_off(end);
        let message = std::mem::replace(&mut self.written, rest);
        let kind = self.has_begun.then(|| message[0]);
        let mut reader = Reader(&message[begin + 4..]);
        Some(match kind {
            None => {
                self.has_begun = true;
                Some(Said::Hello)
            }
            Some(b'P') => {
                let (name, text) = (reader.text(), as_translated(&reader.text()));
                self.texts.insert(name.clone(), text.clone());
                let types = reader.types();
                (!name.is_empty()).then_some(Said::Prepare(text, types))
            }
            Some(b'B') => {
                let (name, parameters) = reader.parameters();
                let text = self.texts.get(&name).expect("a statement that was parsed").clone();
                Some(Said::Ask(text, Parameters(parameters), !name.is_empty()))
            }
            Some(b'C') => {
                reader.take(1);
                self.texts.remove(&reader.text());
                Some(Said::Close)
            }
            Some(b'Q') => Some(Said::Script(reader.text())),
            Some(b'X') => Some(Said::Goodbye),
            // The rest of what belongs to a statement.
            Some(_) => None,
        })
    }
}

/// Returns a statement with the time-out of a commit with which it was translated. The one that is sent depends on the lease.
fn as_translated(text: &str) -> String {
    const BEFORE: &str = "set_config('lock_timeout', '";
    let with_usual = |part: &str| format!("1000{}", part.trim_start_matches(char::is_numeric));
    let mut parts = text.split(BEFORE);
    let first = parts.next().unwrap_or_default().to_owned();
    std::iter::once(first).chain(parts.map(with_usual)).collect::<Vec<_>>().join(BEFORE)
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, length: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken.to_vec()
    }

    fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).expect("a text has an end");
        let text = String::from_utf8(self.take(end)).expect("a text is UTF-8");
        self.take(1);
        text
    }

    fn short(&mut self) -> i16 {
        i16::from_be_bytes(self.take(2).try_into().expect("two bytes"))
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.int()).ok()?;
        Some(self.take(length))
    }

    /// Reads the types that a message gives to the parameters of a statement.
    fn types(&mut self) -> Vec<i32> {
        (0..self.short()).map(|_| self.int()).collect()
    }

    /// Reads a message that binds parameters: the name of the statement, and their values.
    fn parameters(&mut self) -> (String, Vec<Option<Vec<u8>>>) {
        self.text();
        let name = self.text();
        let formats = self.short();
        for _ in 0..formats {
            assert_eq!(self.short(), 1, "parameters are binary");
        }
        let count = self.short();
        (name, (0..count).map(|_| self.value()).collect())
    }
}

/// The parameters of a statement, counted from one as in its text.
#[derive(Debug)]
pub(super) struct Parameters(Vec<Option<Vec<u8>>>);

impl Parameters {
    fn bytes(&self, number: usize) -> Option<&[u8]> {
        self.0[number - 1].as_deref()
    }

    fn array<const N: usize>(&self, number: usize) -> Option<[u8; N]> {
        Some(self.bytes(number)?.try_into().expect("a value of that length"))
    }

    pub(super) fn text(&self, number: usize) -> String {
        self.text_or_null(number).expect("a text")
    }

    pub(super) fn text_or_null(&self, number: usize) -> Option<String> {
        Some(String::from_utf8(self.bytes(number)?.to_vec()).expect("UTF-8"))
    }

    /// Returns the first parameter, for the log.
    pub(super) fn first(&self) -> String {
        let first = self.0.first().and_then(|bytes| bytes.clone()).unwrap_or_default();
        // The name of a worker is another one each time.
        let text = String::from_utf8(first).ok().filter(|text| !text.contains('-'));
        text.unwrap_or_default().chars().filter(char::is_ascii_alphanumeric).take(12).collect()
    }

    pub(super) fn int8(&self, number: usize) -> i64 {
        i64::from_be_bytes(self.array(number).expect("a number"))
    }

    pub(super) fn int4(&self, number: usize) -> i32 {
        i32::from_be_bytes(self.array(number).expect("a number"))
    }

    pub(super) fn int4_or_null(&self, number: usize) -> Option<i32> {
        self.array(number).map(i32::from_be_bytes)
    }

    pub(super) fn bool(&self, number: usize) -> bool {
        self.bytes(number).expect("a truth value") != [0]
    }

    /// Returns seconds as microseconds.
    pub(super) fn span(&self, number: usize) -> i64 {
        self.span_or_null(number).expect("a span")
    }

    pub(super) fn span_or_null(&self, number: usize) -> Option<i64> {
        self.array(number).map(|bytes| micros(f64::from_be_bytes(bytes)))
    }

    pub(super) fn int8_or_null(&self, number: usize) -> Option<i64> {
        self.array(number).map(i64::from_be_bytes)
    }

    /// Returns a moment, in microseconds since the year 2000.
    pub(super) fn time(&self, number: usize) -> i64 {
        self.int8(number)
    }

    fn elements(&self, number: usize) -> Vec<Option<Vec<u8>>> {
        let mut reader = Reader(self.bytes(number).expect("an array"));
        let dimensions = reader.int();
        reader.take(8);
        if dimensions == 0 {
            return Vec::new();
        }
        let length = reader.int();
        reader.take(4);
        (0..length).map(|_| reader.value()).collect()
    }

    pub(super) fn int8s(&self, number: usize) -> Vec<i64> {
        let number_of = |bytes: Vec<u8>| i64::from_be_bytes(bytes.try_into().expect("a number"));
        self.elements(number).into_iter().flatten().map(number_of).collect()
    }

    pub(super) fn int8s_or_null(&self, number: usize) -> Vec<Option<i64>> {
        let number_of = |bytes: Vec<u8>| i64::from_be_bytes(bytes.try_into().expect("a number"));
        self.elements(number).into_iter().map(|bytes| bytes.map(number_of)).collect()
    }

    pub(super) fn int4s(&self, number: usize) -> Vec<i32> {
        let number_of = |bytes: Vec<u8>| i32::from_be_bytes(bytes.try_into().expect("a number"));
        self.elements(number).into_iter().flatten().map(number_of).collect()
    }

    pub(super) fn texts(&self, number: usize) -> Vec<Option<String>> {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        self.elements(number).into_iter().map(|bytes| bytes.map(text)).collect()
    }

    pub(super) fn spans(&self, number: usize) -> Vec<Option<i64>> {
        let span = |bytes: Vec<u8>| {
            micros(f64::from_be_bytes(bytes.try_into().expect("a floating-point number")))
        };
        self.elements(number).into_iter().map(|bytes| bytes.map(span)).collect()
    }
}

fn micros(seconds: f64) -> i64 {
    (seconds * 1e6).round() as i64
}

/// A value of an answer.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Bool(bool),
    Int4(i32),
    Int8(i64),
    Float8(f64),
    Text(String),
    Int8s(Vec<i64>),
    Texts(Vec<String>),
    /// In microseconds since the year 2000.
    Time(i64),
    Null(Kind),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Bool,
    Int4,
    Int8,
    Float8,
    Text,
    Int8s,
    Texts,
    Time,
}

impl Kind {
    pub(super) fn oid(self) -> u32 {
        match self {
            Self::Bool => 16,
            Self::Int8 => 20,
            Self::Int4 => 23,
            Self::Int8s => 1016,
            Self::Texts => 1009,
            Self::Text => 25,
            Self::Float8 => 701,
            Self::Time => 1184,
        }
    }
}

impl Value {
    pub(super) fn oid(&self) -> u32 {
        let kind = match self {
            Self::Bool(_) => Kind::Bool,
            Self::Int4(_) => Kind::Int4,
            Self::Int8(_) => Kind::Int8,
            Self::Float8(_) => Kind::Float8,
            Self::Text(_) => Kind::Text,
            Self::Int8s(_) => Kind::Int8s,
            Self::Texts(_) => Kind::Texts,
            Self::Time(_) => Kind::Time,
            Self::Null(kind) => *kind,
        };
        kind.oid()
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        Some(match self {
            Self::Bool(value) => vec![u8::from(*value)],
            Self::Int4(value) => value.to_be_bytes().to_vec(),
            Self::Int8(value) | Self::Time(value) => value.to_be_bytes().to_vec(),
            Self::Float8(value) => value.to_be_bytes().to_vec(),
            Self::Text(value) => value.as_bytes().to_vec(),
            Self::Int8s(values) => array(20, values.iter().map(|value| value.to_be_bytes())),
            Self::Texts(values) => array(25, values.iter().map(String::as_bytes)),
            Self::Null(_) => return None,
        })
    }
}

/// Returns an array of one dimension, whose elements are of this type.
fn array<B: AsRef<[u8]>>(oid: i32, values: impl ExactSizeIterator<Item = B>) -> Vec<u8> {
    let dimensions = i32::from(values.len() > 0);
    let mut bytes: Vec<u8> = [dimensions, 0, oid].iter().flat_map(|it| it.to_be_bytes()).collect();
    if values.len() > 0 {
        bytes.extend((values.len() as i32).to_be_bytes());
        bytes.extend(1_i32.to_be_bytes());
    }
    for value in values {
        let value = value.as_ref();
        bytes.extend((value.len() as i32).to_be_bytes());
        bytes.extend(value);
    }
    bytes
}

pub(super) fn text_or_null(value: Option<&String>) -> Value {
    value.map_or(Value::Null(Kind::Text), |value| Value::Text(value.clone()))
}

/// What the server says, as bytes.
#[derive(Default)]
pub(super) struct Reply(pub(super) Vec<u8>);

impl Reply {
    fn message(&mut self, kind: u8, body: &[u8]) -> &mut Self {
        self.0.push(kind);
        self.0.extend((body.len() as u32 + 4).to_be_bytes());
        self.0.extend(body);
        self
    }

    pub(super) fn ready() -> Self {
        let mut reply = Self::default();
        reply.message(b'Z', b"I");
        reply
    }

    pub(super) fn hello() -> Self {
        let mut reply = Self::default();
        reply.message(b'R', &[0; 4]).message(b'K', &[0; 8]).message(b'Z', b"I");
        reply
    }

    pub(super) fn script() -> Self {
        let mut reply = Self::default();
        reply.message(b'C', b"SET\0").message(b'Z', b"I");
        reply
    }

    pub(super) fn notification(channel: &str) -> Self {
        let body = [&[0; 4], channel.as_bytes(), &[0, 0]].concat();
        let mut reply = Self::default();
        reply.message(b'A', &body);
        reply
    }

    /// Says what a statement is that was prepared.
    pub(super) fn prepared(types: &[i32], columns: &[Kind]) -> Self {
        let mut reply = Self::default();
        let mut body = (types.len() as u16).to_be_bytes().to_vec();
        body.extend(types.iter().flat_map(|oid| oid.to_be_bytes()));
        reply.message(b'1', &[]).message(b't', &body);
        reply.columns(columns.iter().map(|column| column.oid())).message(b'Z', b"I");
        reply
    }

    pub(super) fn closed() -> Self {
        let mut reply = Self::default();
        reply.message(b'3', &[]).message(b'Z', b"I");
        reply
    }

    fn columns(&mut self, oids: impl ExactSizeIterator<Item = u32>) -> &mut Self {
        let mut body = (oids.len() as u16).to_be_bytes().to_vec();
        for oid in oids {
            body.extend([b'c', 0, 0, 0, 0, 0, 0, 0]);
            body.extend(oid.to_be_bytes());
            body.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 1]);
        }
        self.message(b'T', &body)
    }

    /// Begins the answer to a statement.
    fn bound(is_prepared: bool) -> Self {
        let mut reply = Self::default();
        if !is_prepared {
            reply.message(b'1', &[]);
        }
        reply.message(b'2', &[]);
        reply
    }

    pub(super) fn error(code: &str, is_prepared: bool) -> Self {
        // The only constraint that is violated here has one claim at most for a turn.
        let body = ["SERROR\0VERROR\0C", code, "\0Mrefused\0njob_turn\0\0"].concat();
        let mut reply = Self::bound(is_prepared);
        reply.message(b'E', body.as_bytes()).message(b'Z', b"I");
        reply
    }

    pub(super) fn rows(rows: &[Vec<Value>], is_prepared: bool) -> Self {
        let mut reply = Self::bound(is_prepared);
        if !is_prepared {
            reply.columns(rows.first().map_or(&[][..], |row| row).iter().map(Value::oid));
        }
        for row in rows {
            let mut body = (row.len() as u16).to_be_bytes().to_vec();
            for value in row {
                let bytes = value.bytes();
                let length = bytes.as_ref().map_or(-1, |bytes| bytes.len() as i32);
                body.extend(length.to_be_bytes());
                body.extend(bytes.into_iter().flatten());
            }
            reply.message(b'D', &body);
        }
        reply.message(b'C', b"SELECT 1\0").message(b'Z', b"I");
        reply
    }
}

//! The example program `prometheus` as Prometheus sees it: pages over TCP, of which every line is parsed.

mod exposition;

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    path::Path,
    thread,
};

use crate::support::{LONG, Patience, program::Program};
use exposition::{Page, parse};

/// The running program, and who scrapes it.
struct Served {
    program: Program,
    client: Client,
}

/// Asks the server at this address.
struct Client {
    address: String,
}

impl Served {
    fn start() -> Self {
        let mut program = Program::start("prometheus", ["--listen", "127.0.0.1:0"]);
        let line = program.read_until("Serving http://");
        let rest = line.split_once("http://").expect("an address").1;
        let address = rest.split_once("/metrics").expect("a path").0.to_owned();
        Self { program, client: Client { address } }
    }
}

impl Client {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(LONG)).expect("it is a limit");
        stream
    }

    /// Sends these bytes, and returns the whole answer: its head and its body.
    fn ask(&self, request: &str) -> (String, String) {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        (head.to_owned(), body.to_owned())
    }

    /// Scrapes the metrics, as Prometheus does.
    fn scrape(&self) -> Page {
        let request =
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain;version=0.0.4\r\n\r\n";
        let (head, body) = self.ask(request);
        let lines: Vec<_> = head.split("\r\n").collect();
        assert_eq!(lines[0], "HTTP/1.1 200 OK");
        assert!(
            lines.contains(&"Content-Type: text/plain; version=0.0.4; charset=utf-8"),
            "{head}"
        );
        let length = format!("Content-Length: {}", body.len());
        assert!(lines.contains(&length.as_str()), "{head}");
        parse(&body).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Scrapes until the page says so.
    fn scrape_until(&self, mut condition: impl FnMut(&Page) -> bool) -> Page {
        let mut patience = Patience::new();
        loop {
            let page = self.scrape();
            if condition(&page) {
                return page;
            }
            patience.go_on(format_args!("another page than {page:?}"));
        }
    }
}

/// The value of the series of the executor `demo` that has no other label.
fn value(page: &Page, name: &str) -> f64 {
    let labels = BTreeMap::from([("executor".to_owned(), "demo".to_owned())]);
    *page[name].samples.get(&(name.to_owned(), labels)).expect("a series")
}

/// The name, type and description of each metric that the page of the documents lists.
fn listed() -> Vec<[String; 3]> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/observing.md");
    let page = fs::read_to_string(page).expect("the page");
    let rows = page.lines().filter(|line| line.starts_with("| `punctual_"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().replace('`', "")).collect();
        [1, 2, 4].map(|column| cells[column].clone())
    })
    .collect()
}

/// A scrape is a page of Prometheus' text format, with every metric that is documented, under its type and with its
/// description; the numbers of one scrape add up.
#[test]
fn a_scrape_has_every_metric_and_adds_up() {
    let served = Served::start();
    let page = served.client.scrape_until(|page| value(page, "punctual_runs_failed_total") >= 1.0);
    let listed = listed();
    assert!(listed.len() > 15, "{listed:?}");
    for [name, kind, meaning] in &listed {
        let family = page.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(family.kind.as_ref(), Some(kind), "{name}");
        assert_eq!(family.help.as_ref(), Some(meaning), "{name}");
    }
    let others: Vec<_> = page.keys().filter(|name| !name.starts_with("punctual_")).collect();
    assert_eq!(others, ["demo_lateness_seconds"]);
    assert_eq!(page.len(), listed.len() + 1);

    let tasks = |what: &str| value(&page, &format!("punctual_tasks_{what}"));
    let ended = ["completed_total", "failed_total", "cancelled_total"].map(tasks);
    let sum = tasks("pending") + tasks("active") + ended.iter().sum::<f64>();
    assert_eq!((tasks("submitted_total"), sum), (4.0, 4.0));
    assert!(tasks("active") <= value(&page, "punctual_workers"));
    let states = &page["punctual_executor_state"].samples;
    let running = |labels: &BTreeMap<_, _>| labels["state"] == "running";
    assert_eq!(states.len(), 4);
    for ((_, labels), value) in states {
        assert_eq!(*value, f64::from(u8::from(running(labels))), "{labels:?}");
    }
}

/// The counts of a histogram's buckets in ascending order of their bounds, of the series with these other labels.
fn buckets(page: &Page, name: &str, others: &[(&str, &str)]) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    for ((_, labels), count) in &page[name].samples {
        let has = |(name, value): &(&str, &str)| labels.get(*name).is_some_and(|is| is == value);
        if labels.len() == others.len() + 1 && others.iter().all(has) {
            let bound = &labels["le"];
            let bound =
                if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a number") };
            found.push((bound, *count));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    found
}

/// The result of Prometheus's `histogram_quantile(share, rate(…))` for two scrapes: the bucket in which that share of
/// the runs between them is reached, and in it a straight line.
fn histogram_quantile(share: f64, before: &[(f64, f64)], after: &[(f64, f64)]) -> f64 {
    let grown: Vec<_> =
        before.iter().zip(after).map(|(one, other)| (one.0, other.1 - one.1)).collect();
    let rank = share * grown.last().expect("some buckets").1;
    let place = grown.iter().position(|(_, count)| *count >= rank).expect("the last has all");
    let (lower, below) = if place == 0 { (0.0, 0.0) } else { grown[place - 1] };
    let (upper, count) = grown[place];
    if upper.is_infinite() {
        lower
    } else {
        lower + (upper - lower) * (rank - below) / (count - below)
    }
}

/// The buckets are those of a Prometheus histogram: cumulative, none of them ever goes back, the last counts all runs; and
/// what they say of the time between two scrapes is what went on there. The slow task is alone in its group, and takes 30 ms.
#[test]
fn the_buckets_say_what_went_on_between_two_scrapes() {
    let served = Served::start();
    let (demo, slow) =
        (&[("executor", "demo")][..], &[("executor", "demo"), ("group", "reports")][..]);
    let (of_all, of_group) =
        ("punctual_run_time_seconds_bucket", "punctual_group_run_time_seconds_bucket");
    let runs = |page: &Page| buckets(page, of_group, slow).last().expect("some").1;
    let first = served.client.scrape_until(|page| runs(page) >= 1.0);
    let second = served.client.scrape_until(|page| runs(page) >= runs(&first) + 5.0);
    for (name, labels) in [(of_all, demo), (of_group, slow)] {
        let (before, after) = (buckets(&first, name, labels), buckets(&second, name, labels));
        assert_eq!((before.len(), after.len()), (20, 20));
        for counts in [&before, &after] {
            assert!(counts.is_sorted_by(|one, other| one.1 <= other.1), "{counts:?}");
        }
        assert!(
            before.iter().zip(&after).all(|(one, other)| one.1 <= other.1),
            "{before:?}, {after:?}"
        );
    }
    let all = buckets(&second, of_all, demo).last().expect("some").1;
    assert_eq!(all, value(&second, "punctual_run_time_seconds_count"));
    let median = histogram_quantile(
        0.5,
        &buckets(&first, of_group, slow),
        &buckets(&second, of_group, slow),
    );
    assert!(median >= 0.025, "{median}");
    // The quick task runs more often than the slow one, and does nothing.
    let labels = BTreeMap::from([("executor", "demo"), ("group", "reports")]);
    let labels =
        labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let sum = "punctual_group_run_time_microseconds_total";
    let micros = second[sum].samples[&(sum.to_owned(), labels)];
    let of_all = value(&second, "punctual_run_time_microseconds_total");
    assert!(micros >= 30_000.0 * runs(&second), "{micros} for {} runs", runs(&second));
    assert!(micros <= of_all, "{micros} of {of_all}");
}

/// The rules for alerts are on metrics that are scraped, and those on histograms keep the label of the bounds.
#[test]
fn the_rules_for_alerts_are_on_what_is_scraped() {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/prometheus/alerts.yml");
    let rules = fs::read_to_string(rules).expect("the rules");
    let page = Served::start().client.scrape();
    let expressions: Vec<_> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert_eq!(expressions.len(), rules.matches("- alert: ").count());
    assert!(expressions.len() > 3, "{rules}");
    for rule in expressions {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let words = rule.split(|letter| !is_part(letter));
        let names: Vec<_> = words.filter(|word| word.starts_with("punctual_")).collect();
        assert!(!names.is_empty(), "{rule}");
        for name in names {
            let kind = page.get(name).and_then(|family| family.kind.as_deref());
            let wanted = if rule.contains(&format!("({name}[")) && !rule.contains("over_time") {
                "counter"
            } else {
                "gauge"
            };
            assert_eq!(kind, Some(wanted), "{name} in {rule}");
            if name.ends_with("_bucket") {
                assert!(
                    rule.starts_with("histogram_quantile(") && rule.contains(", le) ("),
                    "{rule}"
                );
            }
        }
    }
}

/// A counter never goes back from one scrape to the next, and what runs is counted; the program's own summary has its
/// three tasks.
#[test]
fn counters_grow_from_scrape_to_scrape() {
    let served = Served::start();
    let first = served.client.scrape();
    let mut last = value(&first, "punctual_runs_total");
    let more = last + 20.0;
    let page = served.client.scrape_until(|page| {
        let runs = value(page, "punctual_runs_total");
        assert!(last <= runs, "{last}, {runs}");
        last = runs;
        runs >= more
    });
    assert!(value(&page, "punctual_runs_total") > value(&first, "punctual_runs_total"));
    let samples = &page["demo_lateness_seconds"].samples;
    for task in ["quick", "slow", "moody"] {
        let of = |(name, labels): &(String, BTreeMap<_, _>)| {
            name.ends_with("_count") && labels["task"] == *task
        };
        let count = samples.iter().find(|(series, _)| of(series)).expect("a count");
        assert!(*count.1 >= 1.0, "{task}: {samples:?}");
    }
}

/// A request that is not a scrape is refused with the right status, and the next scrape is answered.
#[test]
fn what_is_no_scrape_is_refused() {
    let served = Served::start();
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(9000));
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("GET /metric HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        ("GET /metrics\r\n\r\n", "400 Bad Request"),
        ("GET /metrics HTTP/2\r\n\r\n", "400 Bad Request"),
        ("\r\n\r\n", "400 Bad Request"),
        ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200 OK"),
    ] {
        let (head, _) = served.client.ask(request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request:?}: {head}");
    }
    // The answer to a head that is too long may be lost, because the server does not read the rest of it.
    let mut stream = served.client.connect();
    let _ = stream.write_all(long.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    served.client.scrape();
}

/// Clients that leave early, and one that says nothing, do not keep the next from its page; several at once each get theirs.
#[test]
fn a_client_does_not_keep_others_waiting() {
    let served = Served::start();
    for _ in 0..10 {
        drop(served.client.connect());
        let mut rude = served.client.connect();
        rude.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("it reads");
        let _ = rude.shutdown(Shutdown::Both);
    }
    let silent = served.client.connect();
    let client = &served.client;
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| client.scrape());
        }
    });
    drop(silent);
}

/// Ctrl-C ends the program, with success; an address that is taken, or none, is an error.
#[test]
fn it_ends_as_programs_do() {
    let served = Served::start();
    let taken = Program::start("prometheus", ["--listen", &served.client.address]).end();
    assert_eq!((taken.code, taken.stdout.len()), (Some(1), 0), "{taken:?}");
    assert!(taken.stderr.starts_with("error: cannot listen on 127.0.0.1:"), "{taken:?}");
    served.client.scrape();
    #[cfg(unix)]
    {
        served.program.interrupt();
        let end = served.program.end();
        assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    }
    for (args, cause) in [
        (&["--listen"][..], "--listen wants an address"),
        (&["--nope"], "unknown option --nope"),
        (&["now"], "unknown argument now"),
    ] {
        let end = Program::start("prometheus", args).end();
        assert_eq!((end.code, end.stdout.len()), (Some(2), 0), "{args:?}: {end:?}");
        assert!(end.stderr.contains(cause), "{args:?}: {end:?}");
    }
    let help = Program::start("prometheus", ["--help"]).end();
    assert_eq!(help.code, Some(0), "{help:?}");
    assert!(help.has_line(&["Usage: prometheus"]), "{help:?}");
}

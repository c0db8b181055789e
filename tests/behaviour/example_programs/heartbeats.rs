//! The server, with its own clients and with real ones.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use super::demonstrates;
use crate::support::{LONG, program::Program};

/// At the end all clients have left or were disconnected; the silent ones were disconnected.
#[test]
fn the_server_demonstrates_itself() {
    demonstrates("heartbeats", |end| {
        ["ben", "carla"].iter().all(|client| end.has_line(&[client, "is hung up on"]))
            && end.has_line(&["4 connections: ", " left, ", " cut, 0 there at the end"])
    });
}

/// A server, and a way to connect to it.
fn server(timeout: &str) -> (Program, impl Fn() -> TcpStream) {
    let args = ["--listen", "127.0.0.1:0", "--timeout", timeout];
    let mut server = Program::start("heartbeats", args);
    let line = server.read_until("Listening on ");
    let address = line.split([' ', ',']).nth(2).expect("an address").to_owned();
    let connect = move || {
        let stream = TcpStream::connect(&address).expect("it listens");
        stream.set_read_timeout(Some(LONG)).expect("a limit");
        stream
    };
    (server, connect)
}

/// Waits until the server hangs up. A read with a limit ends with `Interrupted` if the process is suspended and continued
/// meanwhile; `read_to_end` then reads again. What a client sends after it was cut resets its connection.
fn wait_for_the_end(client: &mut TcpStream) {
    match client.read_to_end(&mut Vec::new()) {
        Ok(read) => assert_eq!(read, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}

#[test]
fn the_server_disconnects_a_silent_client() {
    let (mut server, connect) = server("1s");
    let begun = Instant::now();
    let (mut silent, mut endless) = (connect(), connect());
    endless.write_all(b"no end of line").unwrap_or_default();
    for client in [&mut silent, &mut endless] {
        wait_for_the_end(client);
        assert!(begun.elapsed() >= Duration::from_secs(1));
        server.read_until("cut after 0 heartbeats: silent for 1s");
    }
    // Each line extends the timeout. One that comes after it, because this process was held up, is for a client that has
    // been cut.
    let is_extended = |_| {
        let mut client = connect();
        server.read_until("connected");
        let is_begun = client.write_all(b"a line, and a part of ").is_ok();
        let sent = Instant::now();
        let is_sent = is_begun && client.write_all(b"another\n").is_ok();
        wait_for_the_end(&mut client);
        let is_counted = server.read_until("cut after ").contains("after 1 heartbeat:");
        assert!(!is_counted || (is_sent && sent.elapsed() >= Duration::from_secs(1)));
        is_counted
    };
    assert!((0..20).any(is_extended), "no line is a heartbeat");
}

#[cfg(unix)]
#[test]
fn an_interrupted_server_disconnects_every_client() {
    let (mut server, connect) = server("1h");
    let mut leaving = connect();
    leaving.write_all(b"one\ntwo\n").expect("it is connected");
    drop(leaving);
    server.read_until("left after 2 heartbeats");
    let mut staying = connect();
    server.read_until("connected");
    server.interrupt();
    wait_for_the_end(&mut staying);
    let end = server.end();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""), "{end:?}");
    let report = "2 connections: 1 left, 0 cut, 1 there at the end";
    assert_eq!(end.stdout.last().map(String::as_str), Some(report), "{end:?}");
}

#[test]
fn impossible_server_options_are_refused() {
    let cases: [(&[&str], i32, &str); 5] = [
        (&["--timeout"], 2, "--timeout wants a duration"),
        (&["--timeout", "5"], 2, "--timeout: bad duration \"5\""),
        (&["--timeout", "0s"], 2, "--timeout: it must be more than zero"),
        (&["--listen"], 2, "--listen wants an address"),
        (&["--listen", "nowhere"], 1, "cannot listen on nowhere: "),
    ];
    for (args, code, cause) in cases {
        let end = Program::start("heartbeats", args).end();
        assert_eq!((end.code, end.stdout.len()), (Some(code), 0), "{args:?}: {end:?}");
        assert!(end.stderr.contains(cause), "{args:?}: {end:?}");
    }
}

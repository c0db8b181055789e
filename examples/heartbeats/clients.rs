//! The demonstration's clients: each sends some heartbeats, and then disconnects or falls silent.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    thread,
    time::Duration,
};

use crate::server::Server;

/// The time between two heartbeats.
const BEAT: Duration = Duration::from_millis(100);

struct Client {
    name: &'static str,
    beats: u32,
    /// `true` if it disconnects in the end. Otherwise it waits until the server hangs up.
    leaves: bool,
}

const CLIENTS: [Client; 4] = [
    Client { name: "anna", beats: 16, leaves: true },
    Client { name: "ben", beats: 5, leaves: false },
    Client { name: "carla", beats: 0, leaves: false },
    Client { name: "dora", beats: 3, leaves: true },
];

/// Returns when all clients have gone.
pub(crate) fn run(server: &Server) {
    thread::scope(|scope| {
        for client in &CLIENTS {
            let run = move || {
                if let Err(error) = client.run(server) {
                    server.say(format_args!("  {}: {error}", client.name));
                }
            };
            if let Err(error) = thread::Builder::new().spawn_scoped(scope, run) {
                server.say(format_args!("  {} cannot be started: {error}", client.name));
            }
        }
    });
}

impl Client {
    fn run(&self, server: &Server) -> io::Result<()> {
        let mut stream = TcpStream::connect(server.address())?;
        let name = self.name;
        server.say(format_args!("  {name} is {}", stream.local_addr()?));
        for _ in 0..self.beats {
            thread::sleep(BEAT);
            writeln!(stream, "{name} is alive")?;
        }
        if self.leaves {
            server.say(format_args!("  {name} leaves"));
            stream.shutdown(Shutdown::Write)?;
        } else {
            server.say(format_args!("  {name} falls silent"));
        }
        // A client that disconnects also waits until the server has seen it: otherwise the
        // demonstration could end before.
        stream.read_to_end(&mut Vec::new())?;
        if !self.leaves {
            server.say(format_args!("  {name} is hung up on"));
        }
        Ok(())
    }
}

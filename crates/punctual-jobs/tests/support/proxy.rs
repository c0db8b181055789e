//! A proxy before a server, that loses answers and falls silent.

use std::{
    io::{Read, Write},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
};

use super::server::Server;

/// A running proxy, on a socket of its own.
pub(crate) struct Proxy {
    url: String,
    cuts: Arc<AtomicU64>,
    silences: Arc<AtomicU64>,
    target: Arc<Mutex<PathBuf>>,
}

impl Proxy {
    pub(crate) fn start(server: &Server) -> Self {
        let directory = server.place().path();
        let own = directory.join("proxy");
        std::fs::create_dir(&own).unwrap();
        let listener = UnixListener::bind(own.join(".s.PGSQL.5432")).unwrap();
        let target = Arc::new(Mutex::new(directory.join(".s.PGSQL.5432")));
        let leads_to = Arc::clone(&target);
        let (cuts, silences) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let (all_cuts, all_silences) = (Arc::clone(&cuts), Arc::clone(&silences));
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) =
                    (client, UnixStream::connect(&*leads_to.lock().unwrap()))
                else {
                    continue;
                };
                let cut = Some((Arc::clone(&all_cuts), all_cuts.load(SeqCst)));
                let silence = || (Arc::clone(&all_silences), all_silences.load(SeqCst));
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let quiet = silence();
                thread::spawn(move || carry(client, server, None, quiet));
                let quiet = silence();
                thread::spawn(move || carry(back.0, back.1, cut, quiet));
            }
        });
        let url =
            server.url().replace(&directory.display().to_string(), &own.display().to_string());
        Self { url, cuts, silences, target }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// New connections lead to this server.
    pub(crate) fn lead_to(&self, server: &Server) {
        *self.target.lock().unwrap() = server.place().path().join(".s.PGSQL.5432");
    }

    /// Each connection of the moment loses the next answer, and breaks then.
    pub(crate) fn cut(&self) {
        self.cuts.fetch_add(1, SeqCst);
    }

    /// The connections of the moment stay open, and carry nothing from now on.
    pub(crate) fn silence(&self) {
        self.silences.fetch_add(1, SeqCst);
    }
}

type Since = (Arc<AtomicU64>, u64);

fn carry(mut from: UnixStream, mut to: UnixStream, cut: Option<Since>, silence: Since) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = from.read(&mut buffer).unwrap_or(0);
        if silence.0.load(SeqCst) != silence.1 {
            // Neither side learns of it.
            std::thread::sleep(std::time::Duration::from_secs(600));
        }
        let is_cut = cut.as_ref().is_some_and(|(cuts, then)| cuts.load(SeqCst) != *then);
        if count == 0 || is_cut || to.write_all(&buffer[..count]).is_err() {
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            return;
        }
    }
}

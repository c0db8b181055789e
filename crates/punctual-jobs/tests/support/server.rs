//! A PostgreSQL server of a test's own, on a socket in its own directory.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
    time::Duration,
};

use rustix::process::{Signal, kill_process};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::{
    block_on,
    place::Place,
    process::{self, Clock},
    wait_until,
};

/// The files with the key of an encrypted server and the certificate that it shows.
const KEY: &str = "server.key";
const SHOWN: &str = "server.crt";

/// A running server. It is ended when this is dropped.
pub(crate) struct Server {
    place: Place,
    child: Option<Child>,
    has_clock: bool,
    /// The port for encrypted connections, if it accepts any.
    port: Option<u16>,
}

impl Server {
    /// Starts a server.
    pub(crate) fn start() -> Self {
        Self::start_with(false)
    }

    /// Starts a server whose clock is [set](Self::set_clock) by the test.
    pub(crate) fn start_with_clock() -> Self {
        Self::start_with(true)
    }

    /// Restarts the server so that it accepts encrypted connections, and no others, at an address of
    /// this machine. Returns that address, and the file with the certificate that it shows.
    pub(crate) fn encrypt(&mut self) -> (String, PathBuf) {
        let directory = self.place.path();
        let [key, shown] = [KEY, SHOWN].map(|name| directory.join(name));
        let config = directory.join("openssl.cnf");
        let text = "[req]\ndistinguished_name=name\nx509_extensions=shown\nprompt=no\n[name]\nCN=localhost\n\
                    [shown]\nbasicConstraints=critical,CA:FALSE\nsubjectAltName=DNS:localhost\n";
        fs::write(&config, text).unwrap();
        let mut openssl = process::mortal_as_server("openssl", None);
        openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-config"]);
        openssl.arg(&config).arg("-keyout").arg(&key).arg("-out").arg(&shown);
        openssl.stdout(Stdio::null()).stderr(Stdio::null());
        let status = process::start(openssl).wait().unwrap();
        assert!(status.success(), "openssl: {status}");
        let port = std::net::TcpListener::bind("localhost:0").unwrap().local_addr().unwrap().port();
        let rules = fs::read_to_string(self.data().join("pg_hba.conf")).unwrap();
        let rules = rules.replace("\nhost ", "\nhostssl ");
        fs::write(self.data().join("pg_hba.conf"), rules).unwrap();
        self.end(Signal::QUIT);
        self.port = Some(port);
        self.launch();
        (format!("host=localhost port={port} user=punctual dbname=postgres"), shown)
    }

    /// Returns a server for all tests that do it no harm.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn start_with(has_clock: bool) -> Self {
        let place = Place::new();
        let mut server = Self { place, child: None, has_clock, port: None };
        let mut initdb = process::mortal_as_server(program("initdb"), None);
        initdb.arg("-D").arg(server.data());
        initdb.args(["-U", "punctual", "-A", "trust", "-E", "UTF8", "--no-locale"]);
        // A commit that is not on the disk yet is lost only if the machine dies.
        initdb.args(["--no-sync", "--no-instructions"]).stdout(Stdio::null());
        let status = process::start(initdb).wait().unwrap();
        assert!(status.success(), "initdb: {status}");
        server.set_clock(0);
        server.launch();
        server
    }

    /// Starts the server. After a kill the last one's children may still be about to end, and then it does
    /// not start; so it is tried for a while.
    fn launch(&mut self) {
        wait_until("the server starts", || {
            let mut child = process::start(self.command());
            let is_up = loop {
                if child.try_wait().unwrap().is_some() {
                    break false;
                }
                if block_on(connect(&self.url())).is_ok() {
                    break true;
                }
                thread::sleep(Duration::from_millis(10));
            };
            self.child = Some(child);
            is_up
        });
    }

    fn command(&self) -> Command {
        let directory = self.place.path().to_string_lossy().into_owned();
        let clock = self.clock();
        let clock = self.has_clock.then_some(Clock::File(&clock));
        let mut command = process::mortal_as_server(program("postgres"), clock);
        command.arg("-D").arg(self.data());
        command.arg("-c").arg(format!("unix_socket_directories={directory}"));
        for setting in ["shared_buffers=16MB", "max_connections=150"] {
            command.args(["-c", setting]);
        }
        match self.port {
            None => drop(command.args(["-c", "listen_addresses="])),
            Some(port) => {
                command.args(["-c", "listen_addresses=localhost", "-c", "ssl=on"]);
                command.args(["-c", &format!("port={port}")]);
                for (setting, file) in [("ssl_key_file", KEY), ("ssl_cert_file", SHOWN)] {
                    command.args(["-c", &format!("{setting}={directory}/{file}")]);
                }
            }
        }
        let log = fs::File::options().create(true).append(true).open(self.place.path().join("log"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.unwrap());
        command
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    fn clock(&self) -> PathBuf {
        self.place.path().join("clock")
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Returns where the server is, as a client has to be told.
    pub(crate) fn url(&self) -> String {
        let port = self.port.unwrap_or(5432);
        format!("host={} port={port} user=punctual dbname=postgres", self.place.path().display())
    }

    /// Sets the server's clock so many seconds ahead of the machine's.
    pub(crate) fn set_clock(&self, ahead: i64) {
        fs::write(self.clock(), format!("{ahead:+}s\n")).unwrap();
    }

    /// Stops the server at once, as `pg_ctl restart -m immediate` does, and starts it again.
    pub(crate) fn restart_immediate(&mut self) {
        self.end(Signal::QUIT);
        self.launch();
    }

    /// Kills the server's first process, and starts the server again.
    pub(crate) fn kill_and_restart(&mut self) {
        self.end(Signal::KILL);
        self.launch();
    }

    /// Makes the server a standby, which is read-only.
    pub(crate) fn demote(&mut self) {
        // A standby begins with a checkpoint that is complete.
        self.end(Signal::INT);
        fs::write(self.data().join("standby.signal"), "").unwrap();
        self.launch();
    }

    /// Stops the server at once, and leaves it stopped until [`again`](Self::again).
    pub(crate) fn stop(&mut self) {
        self.end(Signal::QUIT);
    }

    pub(crate) fn again(&mut self) {
        self.launch();
    }

    fn end(&mut self, signal: Signal) {
        if let Some(mut child) = self.child.take() {
            process::signal(&child, signal);
            child.wait().unwrap();
        }
    }

    /// Freezes all of the server's processes: it accepts nothing and answers nothing.
    pub(crate) fn freeze(&self) {
        self.to_all(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.to_all(Signal::CONT);
    }

    fn to_all(&self, signal: Signal) {
        let first = process::pid(self.child.as_ref().unwrap());
        kill_process(first, signal).unwrap();
        for child in process::children(first) {
            // It may have ended since.
            let _ = kill_process(child, signal);
        }
    }

    /// Waits until the server has a statement wait for a lock of a table, a row, or a transaction. Blocks nothing else of
    /// the caller's runtime.
    pub(crate) async fn has_one_wait(&self) {
        let client = self.connect().await;
        let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'";
        let mut patience = super::Patience::new();
        while rows(&client, waits).await.unwrap()[0][0] == "0" {
            patience.go_on("a statement waits for a lock");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Runs SQL, and returns the rows of it as texts.
    pub(crate) fn sql(&self, text: &str) -> Vec<Vec<String>> {
        block_on(async {
            let client = connect(&self.url()).await.unwrap();
            rows(&client, text).await.unwrap()
        })
    }

    /// Runs SQL, and returns its first value.
    pub(crate) fn value(&self, text: &str) -> String {
        self.sql(text).first().expect("a row")[0].clone()
    }

    /// Opens a transaction that keeps its snapshot, so that the server keeps each row that ends from now on. It is open until this is
    /// dropped.
    pub(crate) fn pin_snapshot(&self) -> (Client, Runtime) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let client = connect(&self.url()).await.unwrap();
            let begin = "begin isolation level repeatable read; select count(*) from pg_class";
            client.batch_execute(begin).await.unwrap();
            client
        });
        (client, runtime)
    }

    pub(crate) fn connect(&self) -> impl Future<Output = Client> {
        let url = self.url();
        async move { connect(&url).await.unwrap() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.to_all(Signal::CONT);
        }
        self.end(Signal::QUIT);
    }
}

/// Connects, in the runtime of the caller.
pub(crate) async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

pub(crate) async fn rows(
    client: &Client,
    text: &str,
) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
    let messages = client.simple_query(text).await?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    Ok(rows
        .map(|row| (0..row.len()).map(|at| row.get(at).unwrap_or("null").to_owned()).collect())
        .collect())
}

/// Returns the path of one of the server's programs.
fn program(name: &str) -> PathBuf {
    let output = Command::new("pg_config").arg("--bindir").output();
    let output = output.expect("pg_config is installed by ci/beyond.sh");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()).join(name)
}

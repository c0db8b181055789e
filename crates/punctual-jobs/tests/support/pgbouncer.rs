//! PgBouncer before a server.

use std::{
    fs,
    process::{Child, Stdio},
};

use rustix::process::Signal;

use super::{
    block_on, process,
    server::{Server, connect},
    wait_until,
};

/// A running pooler. It is ended when this is dropped.
pub(crate) struct PgBouncer {
    child: Child,
    url: String,
}

impl PgBouncer {
    /// Starts one that has `backends` connections to the server at most. Each mode once for a server.
    pub(crate) fn start(server: &Server, mode: &str, backends: u32) -> Self {
        let directory = server.place().path().display().to_string();
        let (port, log) = match mode {
            "session" => (6432, "session.log"),
            _ => (6433, "transaction.log"),
        };
        let settings = format!(
            "[databases]\npostgres = host={directory} user=punctual\n\
             [pgbouncer]\nlisten_addr =\nlisten_port = {port}\nunix_socket_dir = {directory}\n\
             auth_type = any\npool_mode = {mode}\ndefault_pool_size = {backends}\n\
             logfile = {directory}/{log}\nserver_login_retry = 1\n"
        );
        let file = server.place().path().join(format!("{mode}.ini"));
        fs::write(&file, settings).unwrap();
        let mut command = process::mortal_as_server("pgbouncer", None);
        command.arg("--quiet").arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = process::start(command);
        let url = format!("host={directory} port={port} user=punctual dbname=postgres");
        wait_until("the pooler answers", || block_on(connect(&url)).is_ok());
        Self { child, url }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        process::signal(&self.child, Signal::KILL);
        drop(self.child.wait());
    }
}

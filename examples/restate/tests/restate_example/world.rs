//! A server of Restate and the service, each a process that a test kills and starts again.

use std::{
    env, fs,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use restate::{Missed, Plan, Status};
use serde_json::{Value, json};

use crate::patience::eventually;

/// Ended with the test, by the signal that nothing can catch.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it starts"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().expect("SIGKILL");
        self.0.wait().expect("it has ended");
    }
}

/// Both processes, and the folder in which their files are.
pub(crate) struct World {
    folder: PathBuf,
    ingress: u16,
    admin: u16,
    service_port: u16,
    server: Option<Process>,
    service: Option<Process>,
}

impl World {
    /// Starts both, and tells the server of the service.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("punctual-restate-{}-{number}", process::id()));
        fs::create_dir_all(folder.join("notes")).expect("a folder");
        let [ingress, admin, node, service_port] = free_ports();
        let configuration = configuration(&folder, ingress, admin, node);
        fs::write(folder.join("restate.toml"), configuration).expect("its configuration");
        let (server, service) = (None, None);
        let mut world = Self { folder, ingress, admin, service_port, server, service };
        world.start_server();
        world.start_service();
        let uri = format!("http://127.0.0.1:{service_port}");
        eventually("the service is known", || {
            world.ask(world.admin, "POST", "/deployments", &json!({ "uri": uri })).is_ok()
        });
        world
    }

    pub(crate) fn kill_server(&mut self) {
        self.server = None;
    }

    pub(crate) fn start_server(&mut self) {
        let program = env::var_os("RESTATE_SERVER").unwrap_or_else(|| "restate-server".into());
        let log = fs::OpenOptions::new().create(true).append(true).open(self.folder.join("log"));
        let mut command = Command::new(program);
        command.arg("--config-file").arg(self.folder.join("restate.toml")).arg("--no-logo");
        self.server = Some(Process::start(command.stderr(log.expect("a log"))));
        eventually("the server is there", || {
            let health = self.ask(self.ingress, "GET", "/restate/health", &Value::Null);
            health.is_ok() && self.ask(self.admin, "GET", "/health", &Value::Null).is_ok()
        });
    }

    pub(crate) fn kill_service(&mut self) {
        self.service = None;
    }

    pub(crate) fn start_service(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_restate"));
        command.arg("--listen").arg(format!("127.0.0.1:{}", self.service_port)).arg(self.notes());
        self.service = Some(Process::start(&mut command));
    }

    pub(crate) fn notes(&self) -> PathBuf {
        self.folder.join("notes")
    }

    /// The runs that have begun, by the keys of their ticks.
    pub(crate) fn begun(&self) -> Vec<String> {
        let text = fs::read_to_string(self.notes().join("begun")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Puts a schedule that runs each second, as soon as there is a server and a service.
    pub(crate) fn put(&self, name: &str, body: &str) {
        let (expression, zone) = ("* * * * * *".into(), "UTC".into());
        let plan = Plan { expression, zone, body: body.into(), missed: Missed::Each };
        let plan = serde_json::to_value(plan).expect("a plan");
        let path = format!("/Schedule/{name}/put");
        eventually("it is put", || self.ask(self.ingress, "POST", &path, &plan).is_ok());
    }

    /// Removes a schedule, and returns what was known of it then.
    pub(crate) fn remove(&self, name: &str) -> Status {
        self.call(name, "remove")
    }

    pub(crate) fn status(&self, name: &str) -> Status {
        self.call(name, "status")
    }

    fn call(&self, name: &str, handler: &str) -> Status {
        let path = format!("/Schedule/{name}/{handler}");
        let mut answer = None;
        eventually("it answers", || {
            answer = self.ask(self.ingress, "POST", &path, &Value::Null).ok();
            answer.is_some()
        });
        serde_json::from_str(&answer.expect("an answer")).expect("a status")
    }

    /// Asks by HTTP, and returns the body of the answer if its status is one of success.
    pub(crate) fn ask(
        &self,
        port: u16,
        verb: &str,
        path: &str,
        body: &Value,
    ) -> Result<String, String> {
        let broken = |error: io::Error| error.to_string();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut head =
            format!("{verb} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        if !body.is_empty() {
            head +=
                &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        }
        let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(broken)?;
        write!(stream, "{head}\r\n{body}").map_err(broken)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(broken)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        let is_success = head.split(' ').nth(1).is_some_and(|status| status.starts_with('2'));
        if is_success { Ok(body.to_owned()) } else { Err(answer) }
    }

    /// The same of the port at which schedules are called.
    pub(crate) fn try_put(&self, name: &str, plan: &Value) -> Result<String, String> {
        self.ask(self.ingress, "POST", &format!("/Schedule/{name}/put"), plan)
    }

    pub(crate) fn tick_from_outside(&self, name: &str, tick: &Value) -> Result<String, String> {
        self.ask(self.ingress, "POST", &format!("/Schedule/{name}/tick"), tick)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        (self.server, self.service) = (None, None);
        // What a failed test leaves is to be looked at.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Ports that were free a moment ago.
fn free_ports() -> [u16; 4] {
    let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("its address").port())
}

/// One small server, which tells nobody of itself.
fn configuration(folder: &Path, ingress: u16, admin: u16, node: u16) -> String {
    format!(
        "base-dir = {:?}\nnode-name = \"one\"\nlisten-mode = \"tcp\"\nbind-ip = \"127.0.0.1\"\n\
         bind-port = {node}\nadvertised-host = \"127.0.0.1\"\ndefault-num-partitions = 1\n\
         disable-telemetry = true\nrocksdb-total-memory-size = \"128.0 MiB\"\nlog-filter = \"warn\"\n\
         [ingress]\nbind-address = \"127.0.0.1:{ingress}\"\n\
         [admin]\nbind-address = \"127.0.0.1:{admin}\"\ndisable-web-ui = true\n",
        folder.join("data")
    )
}

//! The place of a server: a directory of its own, which goes with it.
//!
//! The directory is named after the process of the test. If that dies without tidying up, the next test that
//! makes one ends what is still running there and removes it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
};

use rustix::process::{Pid, Signal, kill_process};

const PREFIX: &str = "pg-";
/// The system's limit for the path of a socket is 107 bytes, and `/.s.PGSQL.5432` is behind this.
const LONGEST: usize = 90;

/// A directory that is removed when this is dropped.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static SWEEP: Once = Once::new();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let base = base();
        SWEEP.call_once(|| sweep(&base));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        // For the server, which is another user's if the test is root's.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Returns the folder for tests below the target directory; or, if another user cannot get there or the
/// path is too long for a socket, the system's for temporary files. `PUNCTUAL_PLACE` overrides both.
fn base() -> PathBuf {
    if let Some(wanted) = std::env::var_os("PUNCTUAL_PLACE") {
        return PathBuf::from(wanted).join("punctual-jobs");
    }
    let wanted = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let is_open =
        |path: &Path| fs::metadata(path).is_ok_and(|it| it.permissions().mode() & 0o001 != 0);
    let is_fit = wanted.as_os_str().len() + 24 <= LONGEST && wanted.ancestors().all(is_open);
    if is_fit { wanted } else { std::env::temp_dir().join("punctual-jobs") }
}

/// Removes what processes have left that are no more.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(owner) = name.strip_prefix(PREFIX).and_then(|it| it.split('-').next()) else {
            continue;
        };
        if !Path::new("/proc").join(owner).exists() {
            end_server(&entry.path());
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

fn end_server(place: &Path) {
    let Ok(text) = fs::read_to_string(place.join("data/postmaster.pid")) else { return };
    // A server without a first process, which `initdb` starts, has its number with a minus.
    let pid = text.lines().next().and_then(|line| line.parse::<i32>().ok()).map(i32::abs);
    let Some(pid) = pid else { return };
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // The number may be another process's by now.
    let is_ours = String::from_utf8_lossy(&command).contains(&*place.to_string_lossy());
    if let (true, Some(pid)) = (is_ours, Pid::from_raw(pid)) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

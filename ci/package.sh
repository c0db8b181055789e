#!/usr/bin/env bash
# The packages as users get them: ci/package.sh. Packs every crate that is published, and fails if cargo
# has a complaint, if a package holds what no user needs or lacks what one needs, or if it is too large. Then
# a project outside of this workspace depends on what was packed, and is built with the default features,
# with none and with all; with the oldest Rust; with the oldest versions that the manifests allow; and its
# lock file names nothing that only tests use. Why so: docs/decisions/release.md
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

# Each published crate, and how large its package may be, in KiB. The one that `[patch]` needs is not published.
# Of punctual-jobs 50 KiB are priorities, limits, the look inside and the history.
declare -A limits=([punctual]=640 [punctual-thread-pool]=48 [punctual-jobs]=264)
packed=$root/target/packages
export CARGO_TARGET_DIR=$packed

fail() { echo "$1" >&2; exit 1; }

outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT

# All at once, because the companions depend on a version of the core that no registry has yet: cargo then
# takes it from what it packs. What is not committed is packed as well.
rm -f "$packed"/package/*.crate
cargo package --workspace --exclude scheduled-thread-pool --exclude jobs --exclude top --exclude house --exclude punctual-doors --exclude punctual-replicas --no-verify --allow-dirty 2>"$outside/said" \
  || { cat "$outside/said" >&2; exit 1; }
# Cargo names each test and benchmark that the `include` of the manifest leaves out, and cannot be told not to.
left_out='^warning: ignoring (test|benchmark) `[a-z_]+` as `(tests|benches)/[a-z_/]+\.rs` is not included in the published package$'
grep -E '^(warning|error)' "$outside/said" | grep -vE "$left_out" \
  && fail "cargo complains of a package"
[ "$(ls "$packed"/package/*.crate | wc -l)" = "${#limits[@]}" ] || fail "another number of packages than ${#limits[@]}"

# holds NAME: unpacks the package, and checks what it holds.
holds() {
  local name=$1 archive folder files size
  archive=$(ls "$packed/package/$name"-[0-9]*.crate)
  folder=$(basename "$archive" .crate)
  tar -xzf "$archive" -C "$outside"
  mv "$outside/$folder" "$outside/$name"
  files=$(cd "$outside/$name" && find . -type f -printf '%P\n' | sort)
  size=$(($(stat -c %s "$archive") / 1024))
  echo "$name: $(wc -l <<<"$files") files, $size KiB packed"
  ((size <= limits[$name])) || fail "$name is larger than ${limits[$name]} KiB"

  # What cargo writes, and then what a user needs.
  local generated='^(Cargo\.lock|Cargo\.toml|Cargo\.toml\.orig|\.cargo_vcs_info\.json)$'
  local needed='^(README\.md|CHANGELOG\.md|LICENSE-APACHE|LICENSE-MIT|src/[a-z_0-9/]+\.(rs|sql)|examples/([a-z_0-9/]+\.(rs|toml|ics|sh|yml)|README\.md))$'
  grep -vE "$generated|$needed" <<<"$files" && fail "$name: no user needs this"
  for file in README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT src/lib.rs; do
    grep -qx "$file" <<<"$files" || fail "$name lacks $file"
  done
  for licence in LICENSE-APACHE LICENSE-MIT; do
    cmp "$licence" "$outside/$name/$licence"
  done

  # All of the sources, and nothing that only this machine has. Cargo leaves out folders with a manifest of their own: four
  # of the examples.
  local source=.
  [ "$name" = punctual ] || source=crates/$name
  diff <(git -C "$source" ls-files --others --cached src examples ':!examples/jobs' ':!examples/top' ':!examples/desk' ':!examples/restate' | sort) <(grep -E '^(src|examples)/' <<<"$files") >&2 \
    || fail "$name: the package has other sources (>) than the repository (<)"
  git -C "$source" ls-files --others --exclude-standard src examples ':!examples/jobs' ':!examples/top' ':!examples/desk' ':!examples/restate' | grep . \
    && echo "$name: this is packed, and not committed" >&2
  return 0
}
for name in "${!limits[@]}"; do holds "$name"; done

# From here on as a user, who has the packages and nothing else of ours.
features=$(sed -n '/^\[features\]/,/^\[/s/^\([a-z-]*\) = .*/"punctual\/\1"/p' "$outside/punctual/Cargo.toml" | grep -v default | paste -sd,)
version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
# project NAME: a program that depends on the core. Its features switch on the core's.
project() {
  mkdir -p "$outside/$1/src"
  cat >"$outside/$1/Cargo.toml" <<END
[package]
name = "$1"
version = "0.0.0"
edition = "2024"
rust-version = "$version"

[workspace]

[features]
usual = ["punctual/default"]
all = ["usual", $features]

[dependencies]
punctual = { path = "$outside/punctual", default-features = false }
END
  cat >"$outside/$1/src/main.rs" <<'END'
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let executor = punctual::ScheduledThreadPoolExecutor::new(1);
    let answer = executor.schedule(Duration::from_millis(1), || 6 * 7)?;
    assert_eq!(answer.join()?, 42);
    Ok(executor.close()?)
}
END
}
# builds NAME WHAT: the project with the default features, with none and with all.
builds() {
  for chosen in --features=usual --no-default-features --features=all; do
    cargo check --quiet --manifest-path "$outside/$1/Cargo.toml" "$chosen"
  done
  echo "builds with the default features, with none and with all: $2"
}

project newest
builds newest "the newest versions that Rust $version can build"
cargo run --quiet --manifest-path "$outside/newest/Cargo.toml" --features usual
# The documentation as docs.rs builds it.
RUSTC_BOOTSTRAP=1 RUSTDOCFLAGS="--cfg docsrs -D warnings" \
  cargo doc --quiet --no-deps --all-features --manifest-path "$outside/punctual/Cargo.toml"
echo "the documentation is built as by docs.rs"
ci/msrv.sh "$outside/newest"

# oldest NAME FLAG CHOSEN ...: builds the package with the oldest versions that a flag of cargo chooses. The flag looks
# at the dependencies of the package that is built, so the package is no dependency here; and what only tests use
# is taken out of its manifest.
oldest() {
  local name=$1 flag=$2 folder=$outside/oldest-$1
  shift 2
  rm -rf "$folder"
  cp -r "$outside/$name" "$folder"
  rm "$folder/Cargo.lock"
  awk '/^\[/ { skip = /dev-dependencies|^\[\[(example|test|bench)\]\]/ } !skip' "$outside/$name/Cargo.toml" \
    >"$folder/Cargo.toml"
  printf '\n[workspace]\n' >>"$folder/Cargo.toml"
  [ "$name" = punctual ] || printf '[patch.crates-io]\npunctual = { path = "%s" }\n' "$outside/punctual" >>"$folder/Cargo.toml"
  RUSTC_BOOTSTRAP=1 cargo update --quiet --manifest-path "$folder/Cargo.toml" -Z "$flag"
  for chosen in "$@"; do
    cargo check --quiet --lib --manifest-path "$folder/Cargo.toml" "$chosen"
  done
  echo "$name builds with $flag"
}
# First those that our own manifest allows, and then those that any manifest in the tree allows.
for flag in direct-minimal-versions minimal-versions; do
  oldest punctual "$flag" --features=default --no-default-features --all-features
done
# The features of `punctual-jobs` bring a driver and a runtime. With `minimal-versions` an `async-trait` of theirs does
# not build with the oldest `quote` that it allows.
oldest punctual-jobs direct-minimal-versions --no-default-features --features=gate --features=tls
oldest punctual-thread-pool direct-minimal-versions --no-default-features

# The companions, on the core that was packed.
mkdir -p "$outside/companions/src"
cat >"$outside/companions/Cargo.toml" <<END
[package]
name = "companions"
version = "0.0.0"
edition = "2024"
rust-version = "$version"

[workspace]

[features]
all = ["punctual-jobs/tls"]

[dependencies]
punctual-jobs = { path = "$outside/punctual-jobs" }
punctual-thread-pool = { path = "$outside/punctual-thread-pool" }

[patch.crates-io]
punctual = { path = "$outside/punctual" }
END
echo 'pub use {punctual_jobs::Jobs, punctual_thread_pool::ScheduledThreadPool};' >"$outside/companions/src/lib.rs"
cargo check --quiet --manifest-path "$outside/companions/Cargo.toml"
echo "the companions build"
ci/msrv.sh "$outside/companions"

ci/user_lock.sh "$outside/punctual"

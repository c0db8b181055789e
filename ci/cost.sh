#!/usr/bin/env bash
# What a user pays to build the crate: ci/cost.sh counts the other crates that are built on Linux, with the default
# features and with `tracing`, and fails if it is one more. ci/cost.sh --time builds a program that does nothing but depend on the crate,
# in release with one job, and prints the seconds of a processor that this takes; and, because machines differ, those of a
# program that depends on tokio.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

# holds MOST FLAG ...
holds() {
  local most=$1 found
  shift
  found=$(cargo tree --quiet --package punctual --target x86_64-unknown-linux-gnu --edges normal,build \
    --prefix none --no-dedupe --format '{p}' "$@" | awk '{ print $1 }' | sort -u | grep -cvx punctual)
  echo "${*:-by default}: $found other crates are built"
  if ((found > most)); then
    echo "that is more than $most" >&2
    exit 1
  fi
}
holds 10
holds 13 --features tracing

if [[ "${1:-}" == --time ]]; then
  user=$(mktemp -d)
  trap 'rm -rf "$user"' EXIT
  mkdir "$user/src"
  echo 'fn main() {}' >"$user/src/main.rs"
  for dependency in "punctual = { path = \"$root\" }" "punctual = { path = \"$root\", features = [\"tracing\"] }" \
    'tokio = { version = "1", default-features = false, features = ["rt-multi-thread", "time"] }'; do
    printf '[package]\nname = "a-user"\nedition = "2024"\n[workspace]\n[dependencies]\n%s\n' "$dependency" >"$user/Cargo.toml"
    cp Cargo.lock "$user/Cargo.lock"
    cargo update --manifest-path "$user/Cargo.toml" --workspace --offline --quiet
    echo "$dependency"
    TIMEFORMAT='%U s of a processor and %S s of the system'
    time CARGO_BUILD_JOBS=1 cargo build --release --quiet --offline --manifest-path "$user/Cargo.toml" \
      --target-dir "$user/target"
    rm -rf "$user/target"
  done
fi

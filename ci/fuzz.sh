#!/usr/bin/env bash
# Looks for inputs that break something, with each of the targets in fuzz/: ci/fuzz.sh [SECONDS], so
# long each. What it finds is kept in fuzz/artifacts, and run again by
# `cargo +nightly fuzz run TARGET fuzz/artifacts/TARGET/FILE`. What is interesting and breaks nothing
# is kept in fuzz/corpus, and is where the next run goes on.
#
# Needs a nightly toolchain, a C++ compiler and cargo-fuzz; says so if one is missing. Installs the
# last by itself.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-20}

if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "not checked: no nightly toolchain here; install it (rustup toolchain install nightly)"
  exit 0
fi
if ! command -v c++ >/dev/null; then
  echo "not checked: no C++ compiler here, of which libFuzzer is made; install it (apt-get install g++)"
  exit 0
fi
if ! cargo fuzz --version >/dev/null 2>&1 && ! cargo install --quiet --locked cargo-fuzz; then
  echo "not checked: cargo-fuzz cannot be installed; try it by hand (cargo install --locked cargo-fuzz)"
  exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for target in $(cargo +nightly fuzz list); do
  # First the seeds, then what earlier runs have found.
  corpus=("fuzz/corpus/$target" "fuzz/seeds/$target")
  mkdir -p "${corpus[@]}"
  options=(-max_total_time="$seconds" -timeout=20 -print_final_stats=1)
  [ -f "fuzz/$target.dict" ] && options+=(-dict="fuzz/$target.dict")
  if ! cargo +nightly fuzz run "$target" "${corpus[@]}" -- "${options[@]}" >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "$target: broken" >&2
    exit 1
  fi
  echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, none breaks anything"
done

#!/usr/bin/env bash
# Every test of the workspace, by one command: ci/test.sh. `cargo test` alone runs the tests of the core with its
# default features; this adds the other features, the examples that need one or are packages, executors without threads, the
# companions (for which it installs the servers that their tests start), the models and the simulator. It measures,
# lints and builds no packages: .ci/run does.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0

# run WHAT COMMAND ...: says what runs, and how long it took.
run() {
  local what=$1 begun=$SECONDS
  shift
  printf '\n== %s\n' "$what"
  "$@"
  printf -- '-- %s s: %s\n' "$((SECONDS - begun))" "$what"
}

run "the core with every feature, its examples, and the code in its documents" cargo test --all-features
run "the core with no feature" cargo test --no-default-features
run "the larger examples" cargo test -p jobs -p top
run "executors without threads" ci/driven.sh
run "the drop-in" cargo test -p punctual-thread-pool
run "r2d2 on the drop-in" ci/r2d2.sh
run "jobs and gates, against real servers" ci/beyond.sh
run "the models" ci/model.sh
run "the simulator" ci/simulate.sh
run "the smallest protocols in every order" ci/loom.sh
printf '\nall tests passed in %s s\n' "$SECONDS"

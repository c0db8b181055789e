#!/usr/bin/env bash
# Is "Stop by stop" in docs/architecture.md true? tests/proof/path/main.rs schedules one task and joins it, under callgrind and
# in a build without inlining. The script fails if a function that a stop names was not executed, or is not in the file
# that the page names after it. A function in an item below a stop, which describes a rarer case, only has to exist. The
# script prints the functions of each stop, and how many files and functions one task passes: the trip.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

if ! command -v valgrind >/dev/null; then
  echo "not checked: no valgrind here; install it (apt-get install valgrind)"
  exit 0
fi

# Without the passes of LLVM, what is `inline(always)` is a function as well. The checks of debug builds are off the
# path of a user's task.
export CARGO_PROFILE_DEV_DEBUG_ASSERTIONS=false CARGO_PROFILE_DEV_DEBUG=line-tables-only
RUSTFLAGS="-C no-prepopulate-passes" cargo build --manifest-path tests/proof/optimised/Cargo.toml --quiet --bin path \
  --target-dir target/path
program=target/path/debug/path

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# On a busy machine the worker may not sleep yet when the task is scheduled, and then takes it another way.
for _ in 1 2 3; do
  rm -f "$folder"/*
  # A dump has what was executed since the one before.
  valgrind --tool=callgrind --callgrind-out-file="$folder/dump" --compress-strings=no --compress-pos=no \
    --dump-before=path::trip --dump-after=path::trip "$program" >"$folder/said" 2>&1 \
    || { cat "$folder/said"; exit 1; }
  trip=$(grep -l -e 'Trigger: --dump-after=path::trip' "$folder"/dump.*) \
    || { echo "callgrind has not seen the function path::trip"; exit 1; }
  if "$program" check "$trip" >"$folder/compared"; then
    cat "$folder/compared"
    exit 0
  fi
done
cat "$folder/compared"
exit 1

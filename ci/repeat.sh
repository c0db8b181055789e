#!/usr/bin/env bash
# Runs the concurrent tests many times: ci/repeat.sh [TIMES] [FILTER ...]
# Stops at the first failure and shows its output. Not the property tests, calendars and subprocess tests,
# which are slow and sequential, and not the race that is a hundred thousand rounds by itself.
set -euo pipefail
cd "$(dirname "$0")/.."
times=${1:-1000}
shift || true
# shellcheck source=ci/seed.sh
. ci/seed.sh

# The paths of the two test binaries, as cargo says them: those that `cargo test --all-features` has
# built, if it has.
binaries=$(cargo test --all-features --no-run --lib --test tasks --test executors 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')
[ -n "$binaries" ] || { echo "no test binary was built" >&2; exit 1; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for round in $(seq "$times"); do
  for binary in $binaries; do
    if ! timeout 600 "$binary" "$@" --skip every_history --skip cron:: --skip aborts --skip processes:: --skip unheard:: --skip a_hundred_thousand_pools >"$log" 2>&1; then
      cat "$log"
      echo "round $round of $times failed: $binary" >&2
      exit 1
    fi
  done
done
echo "$times rounds passed"

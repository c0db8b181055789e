#!/usr/bin/env bash
# All tests on a machine that is busy and stands still: ci/standstill.sh [TIMES] [core|servers]. Beside the tests run twice as
# many busy loops as there are processors, and at a random moment every process of a test run, its servers too, is
# stopped for 15 s. A test that fails here is a defect of the test: tests/behaviour/support/patience.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
times=${1:-1} which=${2:-core}
# shellcheck source=ci/seed.sh
. ci/seed.sh
RANDOM=$((PUNCTUAL_SEED % 32768))

case $which in
  core) built=(cargo test --all-features) within=60 ;;
  servers) built=(cargo test --package punctual-jobs --all-features) within=120 ;;
  *) echo "usage: ci/standstill.sh [TIMES] [core|servers]" >&2; exit 2 ;;
esac
"${built[@]}" --no-run --quiet

log=$(mktemp)
loops=()
busy() { while :; do :; done; }
for ((each = 0; each < 2 * $(nproc); each++)); do busy & loops+=($!); done
# What is still stopped goes on, and ends.
end() { kill "${loops[@]}" 2>/dev/null || true; signal CONT; rm -f "$log"; }
trap end EXIT

# Every process that the run has started, wherever it is in the tree by now: they share a mark in their environment.
mark=PUNCTUAL_STANDSTILL=$$
signal() {
  local each
  for each in $(grep -alsF "$mark" /proc/[0-9]*/environ 2>/dev/null | sed 's|/proc/||; s|/environ||'); do
    kill "-$1" "$each" 2>/dev/null || true
  done
}

for ((round = 1; round <= times; round++)); do
  env "$mark" "${built[@]}" --no-fail-fast -- --skip replicas:: >"$log" 2>&1 </dev/null &
  tests=$!
  moment=$((RANDOM % within + 1))
  for ((second = 0; second < moment; second++)); do
    kill -0 "$tests" 2>/dev/null || break
    sleep 1
  done
  signal STOP
  sleep 15
  signal CONT
  if ! wait "$tests"; then
    grep -vE '^test .* \.\.\. ok$' "$log"
    echo "round $round of $times failed; all of it stood still after $moment s" >&2
    exit 1
  fi
  echo "round $round of $times: $(awk '/^test result/ { sum += $4 } END { print sum }' "$log") tests passed; they stood still after $moment s"
done

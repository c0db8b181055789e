#!/usr/bin/env bash
# The tests on a machine that is busy and stands still: ci/standstill.sh [TIMES] [core|servers] [AT_ONCE]. Beside them run
# twice as many busy loops as there are processors, and at a random moment every process of a test run, its servers too, is
# stopped for 15 s. So many runs go on at once, or one. A test that fails here is a defect of the test:
# tests/behaviour/support/patience.rs. The examples in the documentation are left out, which take longer to build than to run.
set -euo pipefail
cd "$(dirname "$0")/.."
times=${1:-1} which=${2:-core} at_once=${3:-1}
# shellcheck source=ci/seed.sh
. ci/seed.sh
RANDOM=$((PUNCTUAL_SEED % 32768))

# The moment is within the time that the tests take.
case $which in
  core) built=(cargo test --all-features --lib --bins --tests) within=$((30 * at_once)) ;;
  servers) built=(cargo test --package punctual-jobs --all-features) within=$((120 * at_once)) ;;
  *) echo "usage: ci/standstill.sh [TIMES] [core|servers] [AT_ONCE]" >&2; exit 2 ;;
esac
# The tests run the example programs, which a choice of targets does not build.
cargo build --all-features --examples --quiet
"${built[@]}" --no-run --quiet

logs=$(mktemp -d)
loops=()
busy() { while :; do :; done; }
for ((each = 0; each < 2 * $(nproc); each++)); do busy & loops+=($!); done

# signal SIGNAL MARK: to every process that a run has started, wherever it is in the tree by now: they share a mark in their
# environment.
signal() {
  local each
  for each in $(grep -alsF "$2" /proc/[0-9]*/environ 2>/dev/null | sed 's|/proc/||; s|/environ||'); do
    kill "-$1" "$each" 2>/dev/null || true
  done
}
# What is still stopped goes on, and ends.
end() {
  kill "${loops[@]}" 2>/dev/null || true
  signal CONT "PUNCTUAL_STANDSTILL=$$-"
  rm -rf "$logs"
}
trap end EXIT

# round NUMBER MOMENT: one run of the tests, which stands still after so many seconds.
round() {
  local number=$1 moment=$2 log=$logs/$1 mark=PUNCTUAL_STANDSTILL=$$-$1. tests second
  env "$mark" "${built[@]}" --no-fail-fast >"$log" 2>&1 </dev/null &
  tests=$!
  for ((second = 0; second < moment; second++)); do
    kill -0 "$tests" 2>/dev/null || break
    sleep 1
  done
  signal STOP "$mark"
  sleep 15
  signal CONT "$mark"
  if ! wait "$tests"; then
    grep -vE '^test .* \.\.\. ok$' "$log"
    echo "round $number of $times failed; all of it stood still after $second s" >&2
    return 1
  fi
  echo "round $number of $times: $(awk '/^test result/ { sum += $4 } END { print sum }' "$log") tests passed; they stood still after $second s"
}

status=0
for ((first = 1; first <= times; first += at_once)); do
  rounds=()
  for ((number = first; number < first + at_once && number <= times; number++)); do
    round "$number" $((RANDOM % within + 1)) & rounds+=($!)
  done
  for each in "${rounds[@]}"; do wait "$each" || status=1; done
done
exit $status

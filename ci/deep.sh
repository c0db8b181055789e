#!/usr/bin/env bash
# The long forms of what .ci/run does in short, and what needs another toolchain: ci/deep.sh, about once a month and before
# a release. It takes a night. docs/testing.md says what is in which of the two, and by which rule.
#
# Goes on after a part that fails, and names at the end all that have failed.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0 PUNCTUAL_ROUNDS=all

failed=()
# run WHAT COMMAND ...: says what runs, how long it took, and whether it has failed.
run() {
  local what=$1 begun=$SECONDS
  shift
  printf '\n== %s\n' "$what"
  "$@" || failed+=("$what")
  printf -- '-- %s s: %s\n' "$((SECONDS - begun))" "$what"
}

run "every page in every look" ci/look.sh --all
run "ten million histories" ci/histories.sh 10000000
run "ten thousand schedules of each model" ci/model.sh 10000
run "a million scenarios" ci/simulate.sh 1000000
run "the smallest protocols, with three preemptions" ci/loom.sh 3
run "what is concurrent, a thousand times" ci/repeat.sh 1000
run "ten minutes of fuzzing" ci/fuzz.sh 600
run "an hour's soak" ci/soak.sh 3600
run "the sanitizers" ci/sanitize.sh all 20
run "jobs and gates, in their long forms" ci/beyond.sh long
run "r2d2, in its long form" ci/r2d2.sh long
run "coverage" ci/coverage.sh
run "the public interface beside that of the last release" ci/semver.sh
run "faults that a tool puts in" ci/mutants.sh

if ((${#failed[@]})); then
  printf '\nfailed: %s\n' "${failed[@]}" >&2
  exit 1
fi
printf '\nall of it passed in %s s\n' "$SECONDS"

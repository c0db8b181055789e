#!/usr/bin/env bash
# The rooms of tests/behaviour on executors that a caller drives (tests/behaviour/without_threads): ci/driven.sh [FILTER]. Says at the end how
# many tests had such an executor.
set -euo pipefail
cd "$(dirname "$0")/.."

PUNCTUAL_DRIVEN_LOG=$(mktemp)
export PUNCTUAL_DRIVEN_LOG
trap 'rm -f "$PUNCTUAL_DRIVEN_LOG"' EXIT
cargo test --all-features --test driven -- "$@"
# A thread of a test that builds an executor has no name that contains a path.
printf 'on driven executors: %s tests\n' "$(grep -F :: "$PUNCTUAL_DRIVEN_LOG" | sort -u | wc -l)"

#!/usr/bin/env bash
# The smallest protocols in every order: ci/loom.sh [PREEMPTIONS [MODEL]], with so many at most, or two.
# It says of each model how many orders there were. What it finds it prints with the threads that
# are left; LOOM_LOG=trace shows every step of it, and LOOM_LOCATION=1 where each was made.
set -euo pipefail
cd "$(dirname "$0")/.."

export LOOM_MAX_PREEMPTIONS="${1:-2}"
export RUSTFLAGS="${RUSTFLAGS:-} --cfg loom"

cargo test --manifest-path tests/proof/models/Cargo.toml --quiet --profile model --no-default-features --target-dir target/loom \
  --lib "exhaustive::${2:-}" -- --nocapture

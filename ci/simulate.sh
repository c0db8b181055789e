#!/usr/bin/env bash
# The simulator: ci/simulate.sh [SEEDS] [FIRST], so many seeds from this one on, or from PUNCTUAL_SEED on (ci/seed.sh). Ten
# thousand take about half a minute of one core. Long runs are on docs/evidence/long-runs.md. A seed that fails prints what was done, as little of it as still fails.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=ci/seed.sh
. ci/seed.sh
# Shuttle would take it in place of the seed of each scenario: all would have one order of steps, and `ci/simulate.sh 1 SEED`
# another one in each commit.
unset SHUTTLE_RANDOM_SEED
export PUNCTUAL_SEEDS="${1:-10000}" PUNCTUAL_FIRST_SEED="${2:-$PUNCTUAL_SEED}"
export RUSTFLAGS="${RUSTFLAGS:-} --cfg shuttle"

cargo test --manifest-path tests/proof/models/Cargo.toml --quiet --profile model --no-default-features \
  --target-dir target/model --test simulator

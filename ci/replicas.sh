#!/usr/bin/env bash
# Three replicas with gates and jobs, and their database, simulated: ci/replicas.sh [SEEDS] [FIRST], so many seeds from
# this one on, or from PUNCTUAL_SEED on (ci/seed.sh). A seed that fails prints what was done, with as little trouble as still makes it fail.
# PUNCTUAL_FAULT=SweepTheLiving puts in one of the faults of tests/proof/replicas/fault.rs.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=ci/seed.sh
. ci/seed.sh
export PUNCTUAL_REPLICAS="${1:-3000}" PUNCTUAL_FIRST_SEED="${2:-$PUNCTUAL_SEED}" CARGO_INCREMENTAL=0
# With it a runtime of tokio draws from the seed what it draws; nothing else of it is used.
export RUSTFLAGS="${RUSTFLAGS:-} --cfg tokio_unstable"

cargo test --package punctual-replicas --quiet --profile replicas --target-dir target/replicas

#!/usr/bin/env bash
# The protocols under a model checker: ci/model.sh [SCHEDULES], so many of each kind for each model.
# The schedules are drawn from PUNCTUAL_SEED (ci/seed.sh). What it finds it prints with a schedule; ci/model.sh replay MODEL SCHEDULE runs that one again.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=ci/seed.sh
. ci/seed.sh
export RUSTFLAGS="${RUSTFLAGS:-} --cfg shuttle"

model=(cargo test --manifest-path tests/proof/models/Cargo.toml --quiet --profile model)
model+=(--no-default-features --target-dir target/model)
if [[ "${1:-}" == replay ]]; then
  PUNCTUAL_SCHEDULE=$3 "${model[@]}" --lib --test model -- "$2"
  exit
fi
[[ -z "${1:-}" ]] || export PUNCTUAL_SCHEDULES=$1
"${model[@]}" --lib model::
"${model[@]}" --test model

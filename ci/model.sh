#!/usr/bin/env bash
# The protocols under a model checker: ci/model.sh [SCHEDULES], so many of each kind for each model.
# What it finds it prints with a schedule, which `shuttle::replay` runs again.
set -euo pipefail
cd "$(dirname "$0")/.."

export PUNCTUAL_SCHEDULES="${1:-}"
[[ -n "$PUNCTUAL_SCHEDULES" ]] || unset PUNCTUAL_SCHEDULES
export RUSTFLAGS="${RUSTFLAGS:-} --cfg shuttle"

model=(cargo test --manifest-path ci/models/Cargo.toml --quiet --profile model)
model+=(--no-default-features --target-dir target/model)
"${model[@]}" --lib model::
"${model[@]}" --test model

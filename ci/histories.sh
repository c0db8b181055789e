#!/usr/bin/env bash
# Histories of three threads on real cores, each held against a sorted list: ci/histories.sh [HISTORIES] [SEED].
# What each thread asks follows from the seed, and when it does so does not: a failure prints its history and its seed,
# and with that seed the same questions are asked again.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ -z "${2:-}" ]] || export PUNCTUAL_SEED=$2
# shellcheck source=ci/seed.sh
. ci/seed.sh
export PUNCTUAL_HISTORIES=${1:-1000000}
cargo test --all-features --quiet --lib linearizable

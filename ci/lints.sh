#!/usr/bin/env bash
# The lints of the workspace, with every feature and with none, and of the companions. What is linted here is checked as well:
# every test, example and benchmark compiles.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo clippy --all-targets --all-features --quiet -- -D warnings
cargo clippy --all-targets --no-default-features --quiet -- -D warnings
cargo clippy -p punctual-jobs -p punctual-thread-pool --all-targets --all-features --quiet -- -D warnings

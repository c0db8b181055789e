#!/usr/bin/env bash
# The lints of the core and of the rules, with every feature and with none. What is linted here is checked as well:
# every test, example and benchmark compiles.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo clippy --all-targets --all-features --quiet -- -D warnings
cargo clippy --all-targets --no-default-features --quiet -- -D warnings

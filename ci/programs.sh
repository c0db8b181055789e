#!/usr/bin/env bash
# The larger examples, `jobs` and `top`: lints, and their tests.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo clippy -p jobs -p top --all-targets --quiet -- -D warnings
cargo clippy -p top --features postgres --all-targets --quiet -- -D warnings
cargo test -p jobs -p top

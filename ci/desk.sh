#!/usr/bin/env bash
# The page of the desk: lints, and its buttons.
set -euo pipefail
cd "$(dirname "$0")/.."

desk=(--manifest-path examples/desk/Cargo.toml --target-dir target/desk)
cargo clippy "${desk[@]}" --all-targets --quiet -- -D warnings
cargo test "${desk[@]}"

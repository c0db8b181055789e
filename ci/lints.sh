#!/usr/bin/env bash
# The lints of the core and of the rules: with every feature, with none, and the library with each feature alone. What is
# linted here is checked as well: every test, example and benchmark compiles.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo clippy --all-targets --all-features --quiet -- -D warnings
cargo clippy --all-targets --no-default-features --quiet -- -D warnings
for feature in $(awk '/^\[/ { features = $0 == "[features]"; next } features && /^[a-z-]+ = / && $1 != "default" { print $1 }' Cargo.toml); do
  cargo clippy --lib --no-default-features --features "$feature" --quiet -- -D warnings
done

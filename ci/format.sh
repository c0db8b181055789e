#!/usr/bin/env bash
# Checks the format of all sources: those of the workspace, and those that have manifests of their own.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
# Each workspace of its own. The sources of two of them are the crate's: the models and the optimised builds.
for manifest in benches/peers benches/closures crates/punctual-thread-pool/tests/r2d2 examples/desk examples/restate tests/proof/fuzz tests/proof/wasm; do
  cargo fmt --manifest-path "$manifest/Cargo.toml" --all --check
done
# Compiled by scripts, and in no workspace: ci/compare.sh measures and is no test.
rustfmt --check --edition 2024 benches/compare/main.rs tests/proof/path/main.rs
for script in .ci/run ci/*.sh; do bash -n "$script"; done

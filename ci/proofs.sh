#!/usr/bin/env bash
# Whether everything that runs only in turn is built: the soak, the counted calls, and the targets of the fuzzers.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo check --quiet --manifest-path tests/proof/optimised/Cargo.toml --target-dir target/optimised --all-targets
cargo check --quiet --manifest-path tests/proof/fuzz/Cargo.toml --target-dir target/fuzz --all-targets

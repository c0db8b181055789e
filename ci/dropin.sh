#!/usr/bin/env bash
# The drop-in for `scheduled-thread-pool`: lints, documentation, tests beside the original; and r2d2 on it.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo clippy --package punctual-thread-pool --all-targets --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --package punctual-thread-pool --no-deps --quiet
cargo test --package punctual-thread-pool
cargo clippy --manifest-path crates/punctual-thread-pool/tests/r2d2/Cargo.toml --target-dir target/r2d2 --quiet -- -D warnings
ci/r2d2.sh

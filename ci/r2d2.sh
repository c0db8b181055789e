#!/usr/bin/env bash
# r2d2 with a SQLite file, on the drop-in: ci/r2d2.sh [long]. Eight threads write for three seconds, or for
# twenty, while connections are thrown away and opened again; then every row is there, and no thread and
# no file descriptor is left.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=3
[[ "${1:-}" != long ]] || seconds=20
cargo run --quiet --locked --manifest-path crates/punctual-thread-pool/tests/r2d2/Cargo.toml \
  --target-dir "${CARGO_TARGET_DIR:-target}/r2d2" -- "$seconds"

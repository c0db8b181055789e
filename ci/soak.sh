#!/usr/bin/env bash
# A long bath under a mixed load: ci/soak.sh [SECONDS], an hour unless it is said. Optimised, and in a
# process that is stopped and continued every few seconds. PUNCTUAL_SOAK_SEED repeats what it does.
set -euo pipefail
cd "$(dirname "$0")/.."

export PUNCTUAL_SOAK_SECONDS="${1:-3600}"
cargo test --manifest-path tests/proof/optimised/Cargo.toml --release --quiet --target-dir target/optimised \
  --test soak -- --nocapture

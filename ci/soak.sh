#!/usr/bin/env bash
# A long bath under a mixed load: ci/soak.sh [SECONDS], an hour unless it is said. Optimised, and in a
# process that is stopped and continued every few seconds. What it does is drawn
# from PUNCTUAL_SEED (ci/seed.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=ci/seed.sh
. ci/seed.sh
export PUNCTUAL_SOAK_SECONDS="${1:-3600}" PUNCTUAL_SOAK_SEED="$PUNCTUAL_SEED"
cargo test --manifest-path tests/proof/optimised/Cargo.toml --release --quiet --target-dir target/optimised \
  --test soak -- --nocapture

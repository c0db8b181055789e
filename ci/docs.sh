#!/usr/bin/env bash
# The documentation of the API, as a user sees it and with what is private.
set -euo pipefail
cd "$(dirname "$0")/.."

RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --all-features --quiet
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --no-default-features --document-private-items --quiet

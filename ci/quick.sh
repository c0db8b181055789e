#!/usr/bin/env bash
# The one command before a commit: ci/quick.sh. Format, lints, documentation, and the tests that are quick: those of
# the internal parts, the structural ones, and those of behaviour with short races. `.ci/run` decides what lands;
# it may take twenty minutes, and this needs two in a tree that is built.
set -euo pipefail
cd "$(dirname "$0")/.."

begun=$SECONDS
cargo fmt --all --check
cargo clippy --all-targets --all-features --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --all-features --quiet
# A property is asked with this many inputs, and not with 256. A race that is repeated stops by itself after 3 s.
export PROPTEST_CASES=32
cargo test --quiet -p house
cargo test -p punctual --all-features --quiet --lib --test tasks --test executors --test allocations
printf 'all of it passed in %s s; .ci/run decides what lands\n' "$((SECONDS - begun))"

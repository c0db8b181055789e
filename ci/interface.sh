#!/usr/bin/env bash
# Are the types of other crates in the public interface those that docs/adopting.md lists? ci/interface.sh. A version
# of such a crate is tied to ours, so a new one has to be meant. rustdoc writes the interface as data with a flag that is
# not stable; the crates are compiled as they always are, since the flag is for rustdoc alone (tests/house/interface.rs).
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$PWD/target/interface
rm -rf "$folder" && mkdir -p "$folder"
printf '#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc "$@"\n' >"$folder/rustdoc"
chmod +x "$folder/rustdoc"
for package in punctual punctual-thread-pool punctual-jobs; do
  RUSTDOC=$folder/rustdoc cargo rustdoc --quiet --lib --package "$package" --all-features -- \
    -Z unstable-options --output-format json
done
cp "${CARGO_TARGET_DIR:-target}"/doc/*.json "$folder"
cargo test --quiet -p house --test interface

#!/usr/bin/env bash
# Builds the library with the minimum Rust version that Cargo.toml declares; or, ci/msrv.sh FOLDER, the
# package there, which depends on it. Uses the toolchain of that version, which rustup installs if it
# can be reached, or the compiler named by MSRV_RUSTC; says so if there is neither.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
manifest=${1:-$PWD}/Cargo.toml

if [ -z "${MSRV_RUSTC:-}" ] && command -v rustup >/dev/null; then
  for toolchain in "$version" "$version.0" "$version.1"; do
    MSRV_RUSTC=$(rustup which --toolchain "$toolchain" rustc 2>/dev/null) && break
  done
  if [ -z "$MSRV_RUSTC" ] && timeout 300 rustup toolchain install "$version" --profile minimal --no-self-update >/dev/null 2>&1; then
    MSRV_RUSTC=$(rustup which --toolchain "$version" rustc)
  fi
fi
if [ -z "${MSRV_RUSTC:-}" ]; then
  echo "not checked: no rustc $version here; install it (rustup toolchain install $version) or set MSRV_RUSTC"
  exit 0
fi

"$MSRV_RUSTC" --version | grep -qF " $version." || { echo "$MSRV_RUSTC is not $version" >&2; exit 1; }
for features in --all-features --no-default-features; do
  RUSTC=$MSRV_RUSTC CARGO_TARGET_DIR=$PWD/target/msrv cargo build --quiet --manifest-path "$manifest" "$features"
done
echo "builds with Rust $version"

#!/usr/bin/env bash
# A bill of materials for each published crate: ci/sbom.sh writes target/sbom/CRATE-VERSION.cdx.json, in the format
# CycloneDX, with every feature and for every platform, without what only tests use. It goes with the packages of a
# release. Fails if a bill lacks a crate that the lock file of a user has, or names a folder of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

# Two runs on one commit write the same text, but for the number of the bill.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
sbom=$(ci/tool.sh cargo-cyclonedx)
# The tool writes beside the manifest, whichever folder is wanted.
bill=punctual-sbom
trap 'find "$root" -path "$root/target" -prune -o -name "$bill.json" -exec rm -f {} +' EXIT
CARGO=$(command -v cargo) "$sbom" cyclonedx --quiet --format json --spec-version 1.5 --all-features --target all \
  --override-filename "$bill"

rm -rf target/sbom && mkdir -p target/sbom
for folder in . crates/punctual-thread-pool crates/punctual-jobs; do
  name=$(sed -n 's/^name = "\(.*\)"$/\1/p' "$folder/Cargo.toml" | head -n 1)
  version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$folder/Cargo.toml" | head -n 1)
  written=target/sbom/$name-$version.cdx.json
  sed "s|path+file://$root|path+file://.|g" "$folder/$bill.json" >"$written"
  ! grep -F "$root" "$written" || { echo "$written names a folder of this machine" >&2; exit 1; }
  # Each crate that cargo would build for a user on this machine is in the bill.
  cargo tree --quiet --package "$name" --all-features --edges normal,build --prefix none --format '{p}' \
    | awk '{ print $1 "@" substr($2, 2) }' | sort -u | while IFS= read -r crate; do
      grep -qF "pkg:cargo/$crate" "$written" || { echo "$written lacks $crate" >&2; exit 1; }
    done
  echo "$written: $(grep -c '"purl": "pkg:cargo' "$written") parts"
done

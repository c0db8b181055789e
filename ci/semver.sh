#!/usr/bin/env bash
# Whether the public interface has changed in a way that the version number does not say: ci/semver.sh [REVISION] [CRATE ...]
# compares with that revision, or with the tag of the last release, each of the published crates or those that are named.
# Needs cargo-semver-checks, and installs it if it is not there (ci/tool.sh), which takes some minutes.
# Not in .ci/run: docs/decisions/release.md says why.
set -euo pipefail
cd "$(dirname "$0")/.."

baseline=${1:-$(git tag --list 'v[0-9]*' --sort=-v:refname | head -n 1)}
if [ -z "$baseline" ]; then
  echo "nothing to compare with: no release has a tag (v0.1.0); ci/semver.sh REVISION compares with a revision"
  exit 0
fi
shift || true
crates=("$@")
[ $# -gt 0 ] || crates=(punctual punctual-thread-pool punctual-jobs)

checks=$(ci/tool.sh cargo-semver-checks)
# Each side is looked at in a folder of its own, without the manifests that build the library for other purposes
# under the same name: the tool would not know which one is meant.
rm -rf target/semver && mkdir -p target/semver/now target/semver/before
git archive "$baseline" | tar -x -C target/semver/before --exclude=ci --exclude=fuzz --exclude=benches/peers
git ls-files -z | grep -zvE '^(ci|fuzz|benches/peers)/' | tar -c --null --files-from=- | tar -x -C target/semver/now
for crate in "${crates[@]}"; do
  "$checks" semver-checks --manifest-path target/semver/now/Cargo.toml \
    --baseline-root target/semver/before --package "$crate"
done

#!/usr/bin/env bash
# What the crates depend on: ci/supply.sh. cargo-deny holds licences, banned crates, sources and known vulnerabilities
# against deny.toml; cargo-vet says whether a version of a dependency is one that was audited or exempted by name in
# ci/supply-chain. A new dependency, and a new version of an old one, fails here until it is written down there.
#
# Both need no network but for the database of vulnerabilities. Where that cannot be fetched the script says so and
# goes on.
set -euo pipefail
cd "$(dirname "$0")/.."

deny=$(ci/tool.sh cargo-deny)
"$deny" --workspace check licenses bans sources

said=$(mktemp)
trap 'rm -f "$said"' EXIT
# With a terminal git would ask for a password where it is refused.
if GIT_TERMINAL_PROMPT=0 timeout 120 "$deny" --workspace check advisories >"$said" 2>&1; then
  cat "$said"
elif grep -q 'failed to fetch advisory database' "$said"; then
  echo "advisories not checked: their database cannot be fetched here"
else
  cat "$said" >&2
  exit 1
fi

# Audits that others have published are taken in where there is a network: `cargo vet`, then `cargo vet prune`.
CARGO=$(command -v cargo) "$(ci/tool.sh cargo-vet)" vet --locked --store-path ci/supply-chain

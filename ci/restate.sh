#!/usr/bin/env bash
# The example on Restate: lints, and its tests, which start servers and kill them: ci/restate.sh [install]. Its server is
# a program that npm brings, of one version, and stays in the cache of the user or in the folder that PUNCTUAL_TOOLS names. It is
# under the Business Source License: we run it, and neither build nor pass it on.
set -euo pipefail
cd "$(dirname "$0")/.."

version=1.7.12
folder=${PUNCTUAL_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/punctual}/restate-server-$version
program() { find "$folder/node_modules/@restatedev" -path '*/bin/restate-server' -type f -print -quit 2>/dev/null || true; }
if [[ -z "$(program)" ]]; then
  if ! command -v npm >/dev/null; then
    if ((EUID != 0)); then
      echo "npm is needed, and only root can install it" >&2
      exit 1
    fi
    install=(apt-get install --yes --no-install-recommends npm)
    export DEBIAN_FRONTEND=noninteractive
    "${install[@]}" || { apt-get update && "${install[@]}"; }
  fi
  mkdir -p "${folder%/*}"
  # Beside its place first: what is cut short is never taken for the server. No script of the package is run.
  unfinished=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$unfinished"' EXIT
  npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix "$unfinished" "@restatedev/restate-server@$version" >&2
  rm -rf "$folder"
  mv "$unfinished" "$folder"
fi
[[ "${1:-}" != install ]] || exit 0

RESTATE_SERVER=$(program)
[[ -x "$RESTATE_SERVER" ]] || { echo "npm has no server for this machine" >&2; exit 1; }
export RESTATE_SERVER
example=(--manifest-path examples/restate/Cargo.toml --target-dir target/restate)
cargo clippy "${example[@]}" --all-targets --quiet -- -D warnings
cargo test "${example[@]}"

#!/usr/bin/env bash
# The companions that speak to other machines: ci/beyond.sh, or `ci/beyond.sh long`. Installs the servers that
# their tests start, without a cluster of the system's own. Format, lints, documentation and tests.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0

packages=(punctual-jobs)
long=${1:-}
[[ -z "$long" || "$long" == long ]] || { echo "usage: ci/beyond.sh [long]" >&2; exit 2; }

# has PROGRAM: whether it is there, also where it is not on the path of a user.
has() { PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null; }
export PATH="$PATH:/usr/sbin:/sbin"

if ! has pg_config || ! [[ -x "$(pg_config --bindir)/postgres" ]] || ! has pgbouncer || ! has faketime \
  || ! has openssl; then
  if ((EUID != 0)); then
    echo "postgresql, pgbouncer, faketime and openssl are needed, and only root can install them" >&2
    exit 1
  fi
  # Neither a cluster nor a pooler of the system's is wanted: each test starts its own.
  mkdir -p /etc/postgresql-common
  [[ -e /etc/postgresql-common/createcluster.conf ]] \
    || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
  export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
  install=(apt-get install --yes --no-install-recommends postgresql pgbouncer faketime openssl)
  "${install[@]}" || { apt-get update && "${install[@]}"; }
fi

each=()
for package in "${packages[@]}"; do each+=(--package "$package"); done

cargo fmt --all --check
for features in --all-features --no-default-features "--features gate" "--features postgres" "--features metrics"; do
  # shellcheck disable=SC2086
  cargo clippy "${each[@]}" --all-targets $features --quiet -- -D warnings
done
RUSTDOCFLAGS="-D warnings" cargo doc "${each[@]}" --no-deps --all-features --quiet
RUSTDOCFLAGS="-D warnings" cargo doc "${each[@]}" --no-deps --all-features --document-private-items --quiet

# The long form lets each history of the model have more steps, and each test more time and more rounds.
if [[ "$long" == long ]]; then
  export PUNCTUAL_GATE=long PUNCTUAL_JOBS=long PROPTEST_CASES=4000
fi
# The simulated replicas are a step of their own, optimised and with more seeds: ci/replicas.sh.
cargo test "${each[@]}" --all-features -- --skip replicas::
cargo test "${each[@]}" --no-default-features

#!/usr/bin/env bash
# The companions: ci/beyond.sh [short|long|install]. Installs the servers that the tests start, without a cluster of the system's
# own. The short form runs what needs one server at most: the unit tests, the suite of both queues, a few simulated replicas,
# and the drop-in beside the original. The usual form has lints for each set of features, documentation, and every test of `punctual-jobs`: machines
# that are killed, frozen and cut off from servers, poolers and clocks. The long form gives each test more time and rounds.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0

form=${1:-usual}
case $form in short | usual | long | install) ;; *) echo "usage: ci/beyond.sh [short|long|install]" >&2; exit 2 ;; esac

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

[[ "$form" != install ]] || exit 0

if [[ "$form" == short ]]; then
  # shellcheck source=ci/seed.sh
  . ci/seed.sh
  # As in ci/replicas.sh, which is optimised and has more seeds: here a seed takes a second of a core. All of it is built
  # once, in a folder of its own.
  export PUNCTUAL_REPLICAS=8 PUNCTUAL_FIRST_SEED=$PUNCTUAL_SEED RUSTFLAGS="${RUSTFLAGS:-} --cfg tokio_unstable"
  cargo test --package punctual-jobs --package punctual-thread-pool --package punctual-replicas \
    --features punctual-jobs/postgres --target-dir target/beyond --lib --test replicas --test queue --test api --test same
  exit 0
fi

for features in --no-default-features "--features gate" "--features postgres" "--features metrics"; do
  # shellcheck disable=SC2086
  cargo clippy --package punctual-jobs --all-targets $features --quiet -- -D warnings
done
# Each set of features has its own pages, and a link leads nowhere if it names what another set has.
for features in "" gate metrics; do
  RUSTDOCFLAGS="-D warnings" cargo doc --package punctual-jobs --no-deps --no-default-features --features "$features" --quiet
done
for which in punctual-jobs punctual-thread-pool; do
  RUSTDOCFLAGS="-D warnings" cargo doc --package "$which" --no-deps --all-features --quiet
  RUSTDOCFLAGS="-D warnings" cargo doc --package "$which" --no-deps --all-features --document-private-items --quiet
done

# The long form lets each history of the model have more steps, and each test more time and more rounds.
if [[ "$form" == long ]]; then
  export PUNCTUAL_GATE=long PUNCTUAL_JOBS=long PROPTEST_CASES=4000
fi
# The simulated replicas are a step of their own: ci/replicas.sh.
cargo test --package punctual-jobs --all-features
cargo test --package punctual-jobs --no-default-features

#!/usr/bin/env bash
# Three replicas of one program on this terminal share a schedule: examples/three_replicas.sh [SECONDS]. Needs the
# programs of PostgreSQL; the server is this script's own, in a temporary folder, and ends with it. After a
# third of the time the replica that is running just then is killed, in the middle of its run. When its lease is
# over another one runs that tick again, with the next fence, and the two that are left go on.
set -euo pipefail
cd "$(dirname "$0")/../../.."
seconds=${1:-12}

programs=$(pg_config --bindir) || { echo "install PostgreSQL first: apt-get install postgresql" >&2; exit 1; }
place=$(mktemp -d /tmp/three-replicas.XXXXXX)
# The server refuses root.
as_server=()
if ((EUID == 0)); then
  chown postgres "$place"
  as_server=(setpriv --reuid=postgres --regid=postgres --init-groups)
fi
replicas=()
end() {
  kill -KILL "${replicas[@]}" 2>/dev/null || true
  [[ -z "${server:-}" ]] || kill -QUIT "$server" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$place"
}
trap end EXIT

# REPLICA may name the program, where it has been built already.
if [[ -z "${REPLICA:-}" ]]; then
  cargo build --quiet -p punctual-jobs --features gate --example replica
  REPLICA=${CARGO_TARGET_DIR:-target}/debug/examples/replica
fi

"${as_server[@]}" "$programs/initdb" -D "$place/data" --auth=trust --username=demo --no-sync >/dev/null
"${as_server[@]}" "$programs/postgres" -D "$place/data" -c listen_addresses= \
  -c unix_socket_directories="$place" >"$place/log" 2>&1 &
server=$!
until "$programs/pg_isready" --quiet --host "$place"; do sleep 0.1; done

# What is said goes to the terminal, and to a file from which the one that runs is known.
: >"$place/said"
names=(A B C)
for name in "${names[@]}"; do
  "$REPLICA" "$name" "host=$place user=demo dbname=postgres" > >(tee -a "$place/said") &
  replicas+=($!)
done

sleep "$((seconds / 3))"
# The next run to begin is the one that is interrupted.
begun=$(grep -c " sweeps " "$place/said" || true)
until (($(grep -c " sweeps " "$place/said" || true) > begun)); do sleep 0.02; done
holder=$(grep " sweeps " "$place/said" | tail -n 1 | cut -d ' ' -f 1)
for number in 0 1 2; do
  if [[ "${names[$number]}" == "$holder" ]]; then
    kill -KILL "${replicas[$number]}"
    # So that the shell does not report it as well.
    wait "${replicas[$number]}" 2>/dev/null || true
    echo "-- $holder was killed in the middle of its run"
  fi
done
sleep "$((seconds - seconds / 3))"
echo "-- the end"

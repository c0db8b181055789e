#!/usr/bin/env bash
# The examples under valgrind's memcheck: nothing is leaked, and no memory is used that is not one's
# own. An example's argument is added by ci/valgrind.sh NAME ARGUMENT ...; without, all are run.
# Needs valgrind; says so if it is not there. Nothing is suppressed.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
  echo "not checked: no valgrind here; install it (apt-get install valgrind)"
  exit 0
fi

# One thread runs at a time, and without this the same one for long. What is still reachable at the
# end is not lost: names of threads, the thread that wakes who awaits a queue, buffers of stdout.
memcheck() {
  local program=target/debug/examples/$1
  # An example that is a package.
  [ -d "examples/$1/src" ] && program=target/debug/$1
  echo "memcheck: $*"
  valgrind --quiet --fair-sched=yes --error-exitcode=99 --leak-check=full \
    --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect \
    "$program" "${@:2}" >"$said" || { cat "$said"; exit 1; }
}
said=$(mktemp)
trap 'rm -f "$said"' EXIT

cargo build --quiet --all-features --examples
cargo build --quiet -p jobs -p top
if [ $# -gt 0 ]; then
  memcheck "$@"
  exit 0
fi
memcheck late_then_early
memcheck deferred_callbacks
memcheck retry
memcheck jobs --for 2s --grace 5s
memcheck expiring_cache
memcheck expiring_cache - <<<$'ttl 0.2\nset tea 1 hot\nget tea\nset milk 60 cold\nlist\nquit'
memcheck unpaid_orders
memcheck unpaid_orders - <<<$'order A 0.1\norder B 60\npay B\norder C 3600\nquit'
memcheck heartbeats
memcheck meeting_reminders
memcheck top --manual --every 5s --for 20s
echo "nothing is leaked"

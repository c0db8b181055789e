#!/usr/bin/env bash
# How many instructions each call executes (benches/instructions.rs), and how many of them are
# read-modify-writes or fences, counted by callgrind in the profile that users have and in the one with
# fat LTO, and held against benches/instructions.txt: fails if a call executes more than 3 % more
# instructions (and more than eight), or if it has a read-modify-write more. With --write the figures are written anew.
# With --parts it shows instead what an element of a delay queue costs from its insertion to its end, by how
# 100,000 of them come and go (benches/parts.rs).
#
# The read-modify-writes are those of all that a call executes: the library's own, std's, those of the
# locks, the allocator's. callgrind calls them events of the global bus.
#
# The counts depend on the compiler and on the allocator. Where these are not those that the figures
# were made with, the counts are only shown.
set -euo pipefail
cd "$(dirname "$0")/.."
# Elsewhere a comma may divide the digits.
export LC_ALL=C

if ! command -v valgrind >/dev/null; then
  echo "not counted: no valgrind here; install it (apt-get install valgrind)"
  exit 0
fi

figures=benches/instructions.txt
calls=2000
made_with="$(rustc --version), $(getconf GNU_LIBC_VERSION 2>/dev/null || echo another libc), $(uname -m)"
counted=$(mktemp -d)
trap 'rm -rf "$counted"' EXIT

count() {
  local profile=$1 pending=$2 program=$3 dump
  # On one core: the number of the queue's stripes follows the number of cores.
  taskset -c 0 valgrind --tool=callgrind --callgrind-out-file="$counted/dump" \
    --collect-bus=yes --toggle-collect='*counted_*' --dump-after="${program##*/}::counted_*" \
    "$program" "$pending" >/dev/null 2>"$counted/said" || { cat "$counted/said"; exit 1; }
  for dump in $(ls "$counted"/dump.* | sort -t. -k3n); do
    awk -v profile="$profile" -v pending="$pending" -v calls=$calls '
      /^desc: Trigger: --dump-after=/ { sub(/.*counted_/, ""); call = $0 }
      /^events: Ir Ge$/ { both = 1 }
      /^totals:/ { if (call && both) printf "%-8s %7d %7d %6.1f  %s\n", profile, pending, $2 / calls, $3 / calls, call }' "$dump"
  done
  rm -f "$counted"/dump*
}

build() {
  cargo build --manifest-path tests/proof/optimised/Cargo.toml --quiet --profile "$1" --bin "$2" \
    --target-dir target/optimised
  # Cargo's profile `bench` has the folder of the one that it inherits from.
  program=target/optimised/release/$2
}

if [[ "${1:-}" == --parts ]]; then
  calls=100000
  build release parts
  count release "$calls" "$program"
  exit 0
fi

for profile in release bench; do
  build "$profile" instructions
  for pending in 1000 100000; do
    count "$profile" "$pending" "$program"
  done
done >"$counted/now"
[[ $(wc -l <"$counted/now") -eq 92 ]] || { echo "not every call was counted:"; cat "$counted/now"; exit 1; }

if [[ "${1:-}" == --write ]]; then
  {
    echo "# Instructions, and read-modify-writes and fences among them, for each call: ci/instructions.sh --write"
    echo "# $made_with"
    echo "# profile pending instructions read-modify-writes call"
    cat "$counted/now"
  } >"$figures"
  cat "$figures"
  exit 0
fi

before=$(sed -n '2s/^# //p' "$figures")
if [[ "$before" != "$made_with" ]]; then
  echo "shown and not compared: the figures are of $before, and this is $made_with"
  cat "$counted/now"
  exit 0
fi
awk '
  { key = $1 " " $2 " " $5 }
  FNR == NR { if (!/^#/) { before[key] = $3; locked[key] = $4 }; next }
  !(key in before) { print "new, and without a figure: " $0; failed = 1; next }
  {
    ratio = $3 / before[key]
    # The deadlines begin at the present, so entries are not spread over buckets quite alike; and the difference
    # of two instants takes seven instructions more if its nanoseconds borrow from the seconds.
    is_spread = ($3 - before[key]) ^ 2 <= 64
    if (!is_spread && ratio > 1.03) { printf "grown by %.1f %%: %s (%d before)\n", 100 * (ratio - 1), $0, before[key]; failed = 1 }
    if (!is_spread && ratio < 0.97) { printf "less by %.1f %%, to be written down: %s (%d before)\n", 100 * (1 - ratio), $0, before[key] }
    # They are exact, but for a table that grows now and then, and for the end of the worker.
    more = $4 - locked[key]
    if (more > 0.15) { printf "more read-modify-writes: %s (%s before)\n", $0, locked[key]; failed = 1 }
    if (more < -0.15) { printf "fewer read-modify-writes, to be written down: %s (%s before)\n", $0, locked[key] }
  }
  END { if (failed) print "if that is meant: ci/instructions.sh --write, in the same commit"; exit failed }
' "$figures" "$counted/now"
echo "no call executes more instructions than before, or more read-modify-writes"

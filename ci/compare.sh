#!/usr/bin/env bash
# Is a revision faster than another? ci/compare.sh OLD NEW [ROUNDS] builds benches/compare/main.rs against each of the two
# revisions, in the profile that users have, and runs the two programs in turn: nine rounds, and each round has the
# other one first. For each workload it prints the median of the rounds' ratios new/old of time per operation (below 1:
# the new one is faster), the least and the largest of them, and the median times. It prints too what a pending task
# takes, in bytes allocated, and how large its future is.
#
# Two programs that run in the same minute share what the machine does meanwhile; figures of two days do not. Leave the
# machine alone: a ratio means little if its range is wide.
#
# The program uses the public interface only, so internal names may differ. What it builds stays in target/compare, by
# commit.
set -euo pipefail
# A build that fails in a substitution ends the script.
shopt -s inherit_errexit
if [[ $# -lt 2 || $# -gt 3 ]]; then
  echo "usage: ci/compare.sh OLD NEW [ROUNDS]" >&2
  exit 2
fi
cd "$(dirname "$0")/.."
# Elsewhere a comma may divide the digits.
export LC_ALL=C CARGO_INCREMENTAL=0

root=$PWD
rounds=${3:-9}
[[ "$rounds" =~ ^[1-9][0-9]*$ ]] || { echo "not a number of rounds: $rounds" >&2; exit 2; }
workloads=(w1-one-thread w1-two-threads w2 w3-zero w3-atonce w6-ping w6-pipelined w8 w9-kept w9-queue)
measured=$(mktemp)
trap 'rm -f "$measured"' EXIT

# built COMMIT: builds the program against the commit, and prints the program's path.
built() {
  local commit=$1 folder=target/compare/$1
  if [[ ! -f "$folder/revision/Cargo.toml" ]]; then
    rm -rf "$folder/unpacked"
    mkdir -p "$folder/unpacked"
    git archive "$commit" | tar -x -C "$folder/unpacked"
    mv "$folder/unpacked" "$folder/revision"
  fi
  # The versions of the dependencies are the revision's own.
  cp "$folder/revision/Cargo.lock" "$folder/Cargo.lock"
  cat >"$folder/Cargo.toml" <<EOF
[package]
name = "compare"
version = "0.0.0"
edition = "2024"
publish = false

[workspace]
exclude = ["revision"]

[dependencies]
punctual = { path = "revision" }
counting = { path = "$root/benches/peers/counting" }

[[bin]]
name = "compare"
path = "$root/benches/compare/main.rs"
EOF
  cargo build --manifest-path "$folder/Cargo.toml" --quiet --release --target-dir "$folder/target" >&2
  printf '%s\n' "$folder/target/release/compare"
}

old=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "no such revision: $1" >&2; exit 2; }
new=$(git rev-parse --verify --quiet "$2^{commit}") || { echo "no such revision: $2" >&2; exit 2; }
old_program=$(built "$old")
new_program=$(built "$new")

for ((round = 1; round <= rounds; round++)); do
  for workload in "${workloads[@]}"; do
    if ((round % 2)); then
      before=$("$old_program" "$workload")
      after=$("$new_program" "$workload")
    else
      after=$("$new_program" "$workload")
      before=$("$old_program" "$workload")
    fi
    printf '%s %s %s\n' "$workload" "$before" "$after" >>"$measured"
  done
  [[ ! -t 2 ]] || printf '\rround %d of %d' "$round" "$rounds" >&2
done
[[ ! -t 2 ]] || printf '\r' >&2

printf 'old: %s\nnew: %s\n' "$(git log -1 --format='%h %s' "$old")" "$(git log -1 --format='%h %s' "$new")"
awk -v order="${workloads[*]}" -v rounds="$rounds" '
  { count = ++seen[$1]; before[$1, count] = $2; after[$1, count] = $3; ratio[$1, count] = $3 / $2 }
  # Sorts what a workload has, and leaves it in `sorted`.
  function sort(of, name, i, j, value) {
    for (i = 1; i <= rounds; i++) {
      value = of[name, i] + 0
      for (j = i - 1; j > 0 && sorted[j] > value; j--) sorted[j + 1] = sorted[j]
      sorted[j + 1] = value
    }
  }
  function median(of, name) {
    sort(of, name)
    return (sorted[int((rounds + 1) / 2)] + sorted[int(rounds / 2) + 1]) / 2
  }
  END {
    printf "%-16s %8s %8s %8s %10s %10s\n", "workload", "new/old", "min", "max", "old ns", "new ns"
    for (n = split(order, names, " "); ++i <= n;) {
      name = names[i]
      old = median(before, name)
      new = median(after, name)
      middle = median(ratio, name)
      printf "%-16s %8.3f %8.3f %8.3f %10.1f %10.1f\n", name, middle, sorted[1], sorted[rounds], old, new
    }
  }' "$measured"
read -r old_bytes old_future < <("$old_program" memory)
read -r new_bytes new_future < <("$new_program" memory)
printf 'a pending task, bytes allocated: %s before, %s after\n' "$old_bytes" "$new_bytes"
printf 'size_of ScheduledFuture<()>: %s before, %s after\n' "$old_future" "$new_future"

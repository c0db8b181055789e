#!/usr/bin/env bash
# The search for what nobody has thought of: ci/search.sh [MINUTES], an hour unless it is said. It runs the slices of
# ci/steps.toml one after the other, from where the last search ended, each with a seed from the clock, and begins none
# after that time. Beside other work it may take two cores. `ci/search.sh --all` runs each slice once.
#
# docs/evidence/long-runs.md keeps the place and what was found: a table that this script writes, but for its last column.
# A slice that fails is repeated by the command that is printed, and stays in the table until somebody has written what it was.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0
page=docs/evidence/long-runs.md

names=() commands=()
while IFS=$'\t' read -r name command; do names+=("$name") commands+=("$command"); done \
  < <(ci/table.sh ci/steps.toml slice name run)

minutes=60 place=0 count=0
if [[ ${1:-} == --all ]]; then
  minutes=1000000
else
  minutes=${1:-60}
  next=$(sed -n 's/^The next slice: \*\*\(.*\)\*\*\.$/\1/p' "$page")
  for at in "${!names[@]}"; do [[ ${names[at]} != "$next" ]] || place=$at; done
fi

# note SLICE MINUTES SEED FAILED NEXT: adds one run to the row of a slice, or a row.
note() {
  awk -v slice="$1" -v minutes="$2" -v seed="$3" -v failed="$4" -v next_slice="$5" -v day="$(date +%F)" \
    -v commit="$(git rev-parse --short=8 HEAD)" '
    function row(times, before, found) {
      if (failed) found = found (found == "" || found == "nothing" ? "" : "; ") "**not explained**: seed " seed
      if (found == "") found = "nothing"
      printf "| %s | %d | %d | %s, %s, %s | %s |\n", slice, times + 1, before + minutes, day, commit, seed, found
      written = 1
    }
    /^The next slice: / { print "The next slice: **" next_slice "**."; next }
    /^\| slice \|/ { inside = 1 }
    inside && !/^\|/ { if (!written) row(0, 0, ""); inside = 0 }
    inside { split($0, cell, / *\| */); if (cell[2] == slice) { row(cell[3], cell[4], cell[6]); next } }
    { print }' "$page" >"$page.new"
  mv "$page.new" "$page"
}

failed=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT
while ((SECONDS < 60 * minutes && count < ${#names[@]} + 1000 * (minutes < 1000000))); do
  name=${names[place]} command=${commands[place]} begun=$SECONDS status=0
  PUNCTUAL_SEED=$(date +%s)
  place=$(((place + 1) % ${#names[@]})) count=$((count + 1))
  printf '\n== %s: PUNCTUAL_SEED=%s %s\n' "$name" "$PUNCTUAL_SEED" "$command"
  PUNCTUAL_SEED=$PUNCTUAL_SEED bash -euo pipefail -c ". ci/seed.sh && $command" </dev/null >"$log" 2>&1 || status=$?
  tail -n $((status ? 100 : 3)) "$log"
  printf -- '-- %s s: %s\n' "$((SECONDS - begun))" "$name"
  if ((status)); then
    failed+=("$name: PUNCTUAL_SEED=$PUNCTUAL_SEED bash -c '. ci/seed.sh && $command'")
    cp "$log" "target/search-$PUNCTUAL_SEED.log"
  fi
  note "$name" "$(((SECONDS - begun + 59) / 60))" "$PUNCTUAL_SEED" "$((status != 0))" "${names[place]}"
done

if ((${#failed[@]})); then
  printf '\nfailed: %s\n' "${failed[@]}" >&2
  exit 1
fi
printf '\n%s slices have found nothing in %s s\n' "$count" "$SECONDS"

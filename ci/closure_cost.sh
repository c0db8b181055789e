#!/usr/bin/env bash
# What one more closure costs its user: bytes of machine code, and seconds of processor to compile it, in the profile
# `release`. Each program of benches/closures is built with 2 closures and with 52; a fiftieth of the difference is what one
# costs. The bytes of this crate are held against benches/closures.txt: fails if one grows by more than 3 % (and by
# more than 24 bytes). Seconds depend on the machine, and are only shown. With --write the figures are written anew.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C CARGO_INCREMENTAL=0

if ! command -v size >/dev/null; then
  echo "not measured: no 'size' here; install it (apt-get install binutils)"
  exit 0
fi

figures=benches/closures.txt
made_with="$(rustc --version), $(uname -m)"
folder=target/closures
measured=$(mktemp)
trap 'rm -f "$measured"' EXIT

# build PROGRAM [OPTIONS]: builds it, and prints the bytes of its code and the seconds of processor that its compiling took.
build() {
  local program=$1 begun
  shift
  touch "benches/closures/src/bin/$program.rs"
  local TIMEFORMAT='%U %S'
  begun=$({ time cargo rustc --manifest-path benches/closures/Cargo.toml --quiet --release --target-dir "$folder" \
    --bin "$program" "$@" >&2; } 2>&1) || { echo "$begun" >&2; exit 1; }
  printf '%s %s\n' "$(size -A "$folder/release/$program" | awk '$1 == ".text" { print $2 }')" \
    "$(awk '{ print $1 + $2 }' <<<"$begun")"
}

# First what all programs depend on, so that no measurement has it.
cargo build --manifest-path benches/closures/Cargo.toml --quiet --release --target-dir "$folder" --lib
cargo build --manifest-path benches/closures/Cargo.toml --quiet --release --target-dir "$folder" --lib --features many

for source in benches/closures/src/bin/*.rs; do
  program=$(basename "$source" .rs)
  few=$(build "$program")
  many=$(build "$program" --features many)
  printf '%s %s %s\n' "$program" "$few" "$many" \
    | awk '{ printf "%-28s %7.0f %8.3f\n", $1, ($4 - $2) / 50, ($5 - $3) / 50 }'
done | tee "$measured"

if [[ "${1:-}" == --write ]]; then
  {
    echo "# What one more closure costs: ci/closure_cost.sh --write"
    echo "# $made_with"
    echo "# program, bytes of code, seconds of processor to compile it (on the machine that wrote this)"
    cat "$measured"
  } >"$figures"
  exit 0
fi

before=$(sed -n '2s/^# //p' "$figures")
if [[ "$before" != "$made_with" ]]; then
  echo "shown and not compared: the figures are of $before, and this is $made_with"
  exit 0
fi
awk '
  FNR == NR { if (!/^#/) before[$1] = $2; next }
  !($1 in before) { print "new, and without a figure: " $0; failed = 1; next }
  /^punctual/ && $2 > before[$1] * 1.03 && $2 > before[$1] + 24 { printf "grown: %s (%d before)\n", $0, before[$1]; failed = 1 }
  /^punctual/ && $2 < before[$1] * 0.97 && $2 < before[$1] - 24 { printf "less, to be written down: %s (%d before)\n", $0, before[$1] }
  END { if (failed) print "if that is meant: ci/closure_cost.sh --write, in the same commit"; exit failed }
' "$figures" "$measured"
echo "no closure costs more code than before"

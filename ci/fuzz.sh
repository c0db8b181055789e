#!/usr/bin/env bash
# Looks for inputs that break something, with each of the targets in tests/proof/fuzz/, all at once:
# ci/fuzz.sh [SECONDS], so long each. It keeps what it finds in tests/proof/fuzz/artifacts, and
# `target/fuzz/HOST/release/TARGET tests/proof/fuzz/artifacts/TARGET/FILE` runs that again. What is interesting and
# breaks nothing is kept in tests/proof/fuzz/corpus, from which the next run goes on.
#
# Needs a nightly toolchain and a C++ compiler; says so if one is missing. The flags are those of
# cargo-fuzz, which is not needed, and can be used in its place.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-20}
# shellcheck source=ci/seed.sh
. ci/seed.sh

if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "not checked: no nightly toolchain here; install it (rustup toolchain install nightly)"
  exit 0
fi
if ! command -v c++ >/dev/null; then
  echo "not checked: no C++ compiler here, of which libFuzzer is made; install it (apt-get install g++)"
  exit 0
fi

host=$(rustc +nightly -vV | sed -n 's/^host: //p')
flags=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4)
flags+=(-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table)
flags+=(-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1)
flags+=(-Cdebug-assertions -Zsanitizer=address)
RUSTFLAGS="${RUSTFLAGS:-} ${flags[*]}" cargo +nightly build --manifest-path tests/proof/fuzz/Cargo.toml --quiet \
  --release --target "$host" --target-dir target/fuzz

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
targets=$(sed -n '/^\[\[bin\]\]/,/^$/s/^name = "\(.*\)"$/\1/p' tests/proof/fuzz/Cargo.toml)
[ -n "$targets" ] || { echo "there is no target in tests/proof/fuzz/Cargo.toml" >&2; exit 1; }
declare -A runs
for target in $targets; do
  # First the seeds, then what earlier runs have found.
  corpus=("tests/proof/fuzz/corpus/$target" "tests/proof/fuzz/seeds/$target")
  mkdir -p "${corpus[@]}" "tests/proof/fuzz/artifacts/$target"
  # Far longer than any input takes, and than a virtual machine is suspended.
  options=(-seed=$((PUNCTUAL_SEED % 4294967295 + 1)) -max_total_time="$seconds" -timeout=120 -print_final_stats=1 -artifact_prefix="tests/proof/fuzz/artifacts/$target/")
  [ -f "tests/proof/fuzz/$target.dict" ] && options+=(-dict="tests/proof/fuzz/$target.dict")
  "target/fuzz/$host/release/$target" "${options[@]}" "${corpus[@]}" >"$logs/$target" 2>&1 &
  runs[$target]=$!
done
broken=0
for target in $targets; do
  if wait "${runs[$target]}"; then
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$logs/$target") inputs, none breaks anything"
  else
    tail -n 60 "$logs/$target"
    echo "$target: broken" >&2
    broken=1
  fi
done
exit $broken

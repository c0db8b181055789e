#!/usr/bin/env bash
# Which lines of the library no test runs, and how many branches: ci/coverage.sh. Fails if
# tests/house/evidence/rows/coverage.md does not explain it.
#
# Needs a nightly toolchain (for the branches), cargo-llvm-cov, and the LLVM tools of the compiler's
# version, or others that LLVM_COV and LLVM_PROFDATA name; says so if one is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

missing() { echo "not checked: $1"; exit 0; }
cargo +nightly --version >/dev/null 2>&1 \
  || missing "no nightly toolchain here; install it (rustup toolchain install nightly)"
cargo llvm-cov --version >/dev/null 2>&1 \
  || missing "no cargo-llvm-cov here; install it (cargo install --locked cargo-llvm-cov)"
llvm=$(rustc +nightly -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
if [[ -z "${LLVM_COV:-}" || -z "${LLVM_PROFDATA:-}" ]] \
  && ! ls "$(rustc +nightly --print sysroot)"/lib/rustlib/*/bin/llvm-cov >/dev/null 2>&1; then
  LLVM_COV=$(command -v "llvm-cov-$llvm") && LLVM_PROFDATA=$(command -v "llvm-profdata-$llvm") \
    || missing "no LLVM tools here; install them (rustup component add llvm-tools --toolchain nightly, or apt-get install llvm-$llvm)"
  export LLVM_COV LLVM_PROFDATA
fi

report=target/coverage.lcov
# Tests are not what is to be covered.
own='(/tests/|tests\.rs$|/examples/|/benches/)'
cargo +nightly llvm-cov --branch --all-features --lib --test tasks --test executors --test allocations --quiet \
  --ignore-filename-regex "$own" --lcov --output-path "$report" >/dev/null
cargo +nightly llvm-cov report --branch --ignore-filename-regex "$own" --summary-only \
  | awk 'NR == 1 || /^TOTAL/'

# Of each function, the lines that were never run; and of the page, how many it explains.
awk -v root="$PWD/" '
  FILENAME ~ /\.md$/ {
    if (split($0, cell, "|") > 4 && cell[2] ~ /`src\//) {
      gsub(/[` ]/, "", cell[2]); gsub(/[` ]/, "", cell[3]); sub(/.*::/, "", cell[3])
      explained[cell[2], cell[3]] += cell[4]
    }
    next
  }
  /^SF:/ { file = substr($0, 4 + length(root)); delete text; n = 0
           while ((getline line < (root file)) > 0) text[++n] = line; next }
  /^DA:/ { split(substr($0, 4), cell, ",")
           if (cell[2] == 0) {
             line = text[cell[1]]; sub(/^ +/, "", line)
             if (line == "}" || line == "};" || line == ")" || line == ");" || line ~ /unreachable!/) next
             name = ""
             for (i = cell[1] + 0; i > 0 && name == ""; i--)
               if (match(text[i], /fn [a-z_0-9]+/)) name = substr(text[i], RSTART + 3, RLENGTH - 3)
             count[file, name]++
             lines[file, name] = lines[file, name] file ":" cell[1] ": (" name ") " line "\n"
           } }
  END { for (at in count)
          if (count[at] <= explained[at]) known += count[at]
          else { printf "%s", lines[at]; open += count[at] }
        printf "%d lines are not run and explained, %d are not explained\n", known, open; exit open > 0 }
' tests/house/evidence/rows/coverage.md "$report"

#!/usr/bin/env bash
# Which lines of the library no test runs, and how many branches: ci/coverage.sh. Fails if there is a
# line that docs/coverage.md does not explain.
#
# Needs a nightly toolchain (for the branches), cargo-llvm-cov, and the LLVM tools of the compiler's
# version; says so if one is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

missing() { echo "not checked: $1"; exit 0; }
cargo +nightly --version >/dev/null 2>&1 \
  || missing "no nightly toolchain here; install it (rustup toolchain install nightly)"
cargo llvm-cov --version >/dev/null 2>&1 \
  || missing "no cargo-llvm-cov here; install it (cargo install --locked cargo-llvm-cov)"
llvm=$(rustc +nightly -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
if ! ls "$(rustc +nightly --print sysroot)"/lib/rustlib/*/bin/llvm-cov >/dev/null 2>&1; then
  LLVM_COV=$(command -v "llvm-cov-$llvm") && LLVM_PROFDATA=$(command -v "llvm-profdata-$llvm") \
    || missing "no LLVM tools here; install them (rustup component add llvm-tools --toolchain nightly, or apt-get install llvm-$llvm)"
  export LLVM_COV LLVM_PROFDATA
fi

report=target/coverage.lcov
# Tests are not what is to be covered.
own='(/tests/|tests\.rs$|/examples/|/benches/)'
cargo +nightly llvm-cov --branch --all-features --lib --test it --test allocations --quiet \
  --ignore-filename-regex "$own" --lcov --output-path "$report" >/dev/null
cargo +nightly llvm-cov report --branch --ignore-filename-regex "$own" --summary-only \
  | awk 'NR == 1 || /^TOTAL/'

# Of each file, the lines that were never run; and of the page, those that it explains.
awk -v root="$PWD/" '
  FILENAME ~ /\.md$/ {
    if (/^## /) { gsub(/[`# ]/, ""); file = $0 }
    else if (/^```/) code = !code
    else if (code) { sub(/^ +/, ""); explained[file, $0] = 1 }
    next
  }
  /^SF:/ { file = substr($0, 4 + length(root)); delete text; n = 0
           while ((getline line < (root file)) > 0) text[++n] = line; next }
  /^DA:/ { split(substr($0, 4), cell, ",")
           if (cell[2] == 0) {
             line = text[cell[1]]; sub(/^ +/, "", line)
             if (line == "}" || line == "};" || line == ")" || line == ");") next
             if ((file, line) in explained) known++
             else { print file ":" cell[1] ": " line; open++ }
           } }
  END { printf "%d lines are not run and explained, %d are not explained\n", known, open; exit open > 0 }
' docs/coverage.md "$report"

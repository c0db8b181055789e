#!/usr/bin/env bash
# Puts faults into the protocols, one at a time, and looks whether a test fails: ci/mutants.sh
# [FILE ...], else in the files that .cargo/mutants.toml names, which takes hours. What is no fault
# stands there too, with its reason. A fault that nothing catches is an error.
# ci/mutants.sh --patterns puts no faults in, and only looks whether each pattern matches one. ci/mutants.sh one puts them into
# one of these files, by PUNCTUAL_SEED.
#
# The quick tests come first, and each further kind tries what the ones before did not catch.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo mutants --version >/dev/null 2>&1; then
  echo "not checked: no cargo-mutants here; install it (cargo install --locked cargo-mutants)"
  exit 0
fi

# A pattern that matches no fault excludes nothing: the code that it means has changed.
settings=.cargo/mutants.toml
mapfile -t examined < <(sed -n '/^examine_globs/,/^]/s/^ *"\(.*\)",$/--file=\1/p' "$settings")
mapfile -t patterns < <(sed -n "s/^ *'\(.*\)',.*$/\1/p" "$settings")
faults=$(cargo mutants --list --no-config "${examined[@]}" --colors never)
stale=0
for pattern in "${patterns[@]}"; do
  grep -qP -- "$pattern" <<<"$faults" || { echo "matches no fault: $pattern"; stale=1; }
done
((stale == 0)) || exit 1
if [[ "${1:-}" == --patterns ]]; then
  echo "each of ${#patterns[@]} patterns matches a fault"
  exit 0
fi

if [[ "${1:-}" == one ]]; then
  # shellcheck source=ci/seed.sh
  . ci/seed.sh
  mapfile -t files < <(git ls-files "${examined[@]#--file=}" | grep -v tests)
  set -- "${files[PUNCTUAL_SEED % ${#files[@]}]}"
fi

# A copy, which keeps what it has built from one step to the next.
tree=target/faults
mkdir -p "$tree"
find "$tree" -mindepth 1 -maxdepth 1 ! -name target -exec rm -rf {} +
tar --exclude=./target --exclude=./.git -cf - . | tar -xf - -C "$tree"
rm -rf target/mutants.out target/mutants.out.old

# A fault that one test catches may keep others waiting for ever: the first failure is enough.
runner="target.'cfg(all())'.runner=['$PWD/ci/first_failure.sh']"
files=("${@/#/--re=^}")
# A fault may ask for more and more memory.
ulimit -v 12000000
export PROPTEST_CASES=48 PUNCTUAL_SCHEDULES=500

# try SECONDS KIND [FILTER ...]: with tests of this kind, what is not caught yet.
try() {
  local limit=$1 kind=$2 status=0
  shift 2
  printf '\n== %s %s\n' "$kind" "$*"
  cargo mutants --dir "$tree" --in-place --output target --iterate "${files[@]}" \
    --baseline skip --timeout "$limit" --colors never \
    "--cargo-arg=$kind" "--cargo-arg=--config=$runner" -- -- --test-threads=8 "$@" || status=$?
  # Two: some were not caught. Three: with some a test did not end, which is a failure as well.
  ((status == 0 || status == 2 || status == 3)) || exit "$status"
  cat target/mutants.out/timeout.txt >>target/mutants.out/caught.txt
}

crowds=(hundred_workers many_consumers)
try 60 --lib --skip stress "${crowds[@]/#/--skip=}"
try 120 --lib stress "${crowds[@]}"
try 300 --test=tasks
try 300 --test=executors
# The same sources, by the manifest that has the model checker; its paths lead up from its folder.
for file in Cargo.toml Cargo.lock build.rs; do
  sed 's|"\.\./\.\./|"|' "tests/proof/models/$file" >"$tree/$file"
done
RUSTFLAGS="--cfg shuttle" CARGO_PROFILE_MUTANTS_OPT_LEVEL=2 try 900 --lib model::

if [[ -s target/mutants.out/missed.txt ]]; then
  printf '\nnot caught:\n'
  cat target/mutants.out/missed.txt
  exit 1
fi
printf '\nevery fault was caught\n'

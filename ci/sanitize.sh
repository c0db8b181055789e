#!/usr/bin/env bash
# The library's tests and those of its users' view under the compiler's sanitizers:
# ci/sanitize.sh [thread|address|leak|all] [TIMES]. Stops at the first report, and shows it.
#
# Needs a nightly toolchain; says so if there is none. The one for threads needs std's sources as well
# (rustup component add rust-src --toolchain nightly): only an std that is instrumented too shows how
# its locks, threads and channels order things. Nothing is suppressed for it. The address sanitizer
# looks for leaks as well, and `ci/lsan.supp` says what is leaked on purpose.
set -euo pipefail
cd "$(dirname "$0")/.."
which=${1:-all}
times=${2:-1}
case $which in
  thread | address | leak) sanitizers=$which ;;
  all) sanitizers="thread address leak" ;;
  *) echo "usage: ci/sanitize.sh [thread|address|leak|all] [TIMES]" >&2; exit 2 ;;
esac

if ! cargo +nightly --version >/dev/null 2>&1; then
  echo "not checked: no nightly toolchain here; install it (rustup toolchain install nightly)"
  exit 0
fi
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
case $host in
  x86_64-unknown-linux-gnu | aarch64-unknown-linux-gnu) ;;
  *) echo "not checked: the sanitizers are not for $host; x86_64 and aarch64 Linux have all three"; exit 0 ;;
esac

# Property tests are sequential and long, and the hundred thousand pools are a race by themselves. What
# is to end its process does so in the sanitizer's way, or not in time; and one that leaves an
# executor behind when it exits has leaked it.
skipped=(--skip every_history --skip a_hundred_thousand_pools)
skipped+=(--skip a_body_and_a_capture_that_panic_at_once_abort --skip a_stack_overflow_or_exhausted_memory_in_a_task_aborts)
skipped+=(--skip a_process_that_exits_does_not_wait --skip a_process_that_is_through_does_not_wait)
# Programs of their own, which are not built here.
skipped+=(--skip example_programs)

build=(test --no-run --lib --test tasks --test executors --all-features --target "$host")
if [ -d "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library" ]; then
  build+=(-Zbuild-std)
  has_sources=yes
fi
# Without the numbers of lines, unless asked for: a panic during a panic prints where it came from, even so,
# looks through all of them for that, and lets every other panic wait meanwhile, longer than a test may.
export CARGO_PROFILE_DEV_DEBUG="${CARGO_PROFILE_DEV_DEBUG:-0}" RUST_BACKTRACE=0
# Whole stacks, by which the suppressions go.
export LSAN_OPTIONS="suppressions=$PWD/ci/lsan.supp:print_suppressions=0:fast_unwind_on_malloc=0"
export TSAN_OPTIONS="halt_on_error=1"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for sanitizer in $sanitizers; do
  if [ "$sanitizer" = thread ] && [ -z "${has_sources:-}" ]; then
    echo "thread: not checked: no sources of std here (rustup component add rust-src --toolchain nightly)"
    continue
  fi
  RUSTFLAGS="${RUSTFLAGS:-} -Zsanitizer=$sanitizer" cargo +nightly "${build[@]}" \
    --target-dir "target/$sanitizer" >"$log" 2>&1 || { cat "$log"; exit 1; }
  binaries=$(sed -n 's/.*Executable.*(\(.*\))$/\1/p' "$log")
  [ -n "$binaries" ] || { echo "$sanitizer: no test binary was built" >&2; exit 1; }
  for round in $(seq "$times"); do
    for binary in $binaries; do
      if ! timeout 1800 "$binary" "${skipped[@]}" >"$log" 2>&1; then
        cat "$log"
        echo "$sanitizer: round $round of $times failed: $binary" >&2
        exit 1
      fi
    done
  done
  echo "$sanitizer: $times rounds, no report"
done

#!/usr/bin/env bash
# The library's tests and those of its users' view under the compiler's sanitizers:
# ci/sanitize.sh [thread|address|leak|all] [TIMES]. Stops at the first report, and shows it.
#
# Needs a nightly toolchain; says so if there is none. With the sources of std (rustup component add
# rust-src --toolchain nightly) std is instrumented as well, and nothing is suppressed for threads.
# Without them reports about std's own are suppressed: ci/tsan.supp says which, and why. The address
# sanitizer looks for leaks as well.
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

# Property tests are sequential and long, and the hundred thousand pools are a race by themselves.
skipped=(--skip every_history --skip a_hundred_thousand_pools)

build=(test --no-run --lib --test it --all-features --target "$host")
if [ -d "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library" ]; then
  build+=(-Zbuild-std)
  instrumented=yes
fi
# Reports name lines.
export CARGO_PROFILE_DEV_DEBUG=line-tables-only
export LSAN_OPTIONS="suppressions=$PWD/ci/lsan.supp:print_suppressions=0" TSAN_OPTIONS="halt_on_error=1"
[ -n "${instrumented:-}" ] || TSAN_OPTIONS+=":suppressions=$PWD/ci/tsan.supp"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
for sanitizer in $sanitizers; do
  flags="-Zsanitizer=$sanitizer"
  # Only for threads has code that is not instrumented another ABI.
  [ "$sanitizer" = thread ] && flags+=" -Cunsafe-allow-abi-mismatch=sanitizer"
  binaries=$(RUSTFLAGS="${RUSTFLAGS:-} $flags" cargo +nightly "${build[@]}" \
    --target-dir "target/$sanitizer" 2>&1 | sed -n 's/.*Executable.*(\(.*\))$/\1/p')
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

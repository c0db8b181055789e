#!/usr/bin/env bash
# Runs a test binary and ends it with the first test that fails: ci/first_failure.sh BINARY [ARG ...]
# A fault that one test catches at once may keep others waiting for ever.
set -euo pipefail

exec 3< <(exec "$@")
binary=$!
while IFS= read -r line <&3; do
  printf '%s\n' "$line"
  if [[ "$line" == "test "*" ... FAILED" ]]; then
    kill -KILL "$binary"
    exit 1
  fi
done
wait "$binary"

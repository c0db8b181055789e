#!/usr/bin/env bash
# Builds the core for wasm32-unknown-unknown, where no thread can be started and no clock can be read, and
# runs a driven executor there (tests/proof/wasm/lib.rs) if there is a node. Installs the target if it can; says so if
# there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown

if ! [[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]]; then
  if ! { command -v rustup >/dev/null && timeout 60 rustup target add "$target" >/dev/null 2>&1; }; then
    echo "not checked: no $target here; install it (rustup target add $target)"
    exit 0
  fi
fi

folder=${CARGO_TARGET_DIR:-target}/wasm
cargo build --locked --quiet --manifest-path tests/proof/wasm/Cargo.toml --target "$target" --target-dir "$folder"
echo "builds for $target"

if ! command -v node >/dev/null; then
  echo "not run: no node here"
  exit 0
fi
node --eval '
  const program = new WebAssembly.Module(require("fs").readFileSync(process.argv[1]));
  // Nothing is imported: no clock, no thread, no random numbers.
  const held = new WebAssembly.Instance(program, {}).exports.check();
  if (held < 11) throw new Error(`only ${held} checks have held`);
  console.log(`runs in node ${process.version}: ${held} checks have held`);
' "$folder/$target/debug/punctual_wasm.wasm"

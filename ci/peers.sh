#!/usr/bin/env bash
# The comparison with the peers, tried: lints, tests, and one small measurement; and the benchmarks, each run once.
set -euo pipefail
cd "$(dirname "$0")/.."

peers=(--manifest-path benches/peers/Cargo.toml)
cargo clippy "${peers[@]}" --workspace --all-targets --quiet -- -D warnings
cargo test "${peers[@]}" --workspace --quiet
cargo run "${peers[@]}" --quiet -- quick --rounds 1 --peers punctual,naive --workloads w1,w6,w8,w9,w10,w17 \
  --out benches/peers/target/smoke
# The unit tests of the library, which `--benches` would run as well, run elsewhere.
cargo test --quiet --all-features --bench '*' >/dev/null

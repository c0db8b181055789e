#!/usr/bin/env bash
# Does what the README tells a new user to do, in a project of its own: its install line, and then its program, which
# has to print what it says.
set -euo pipefail
cd "$(dirname "$0")/.."
repository=$PWD

install=$(sed -n 's/^cargo add punctual --path \(.*\)$/\1/p' README.md)
[[ -n "$install" ]] || { echo "the README has no install line" >&2; exit 1; }
user=$(mktemp -d)
trap 'rm -rf "$user"' EXIT

cargo init --quiet --vcs none --name a-user "$user/project"
ln -s "$repository" "$user/$(basename "$install")"
# From our lock file, so that it needs no network where ours is built.
cp Cargo.lock "$user/project/Cargo.lock"
sed -n '/^```rust$/,/^```$/p' README.md | sed '1d;/^```$/,$d' >"$user/project/src/main.rs"

cd "$user/project"
cargo add --quiet --offline punctual --path "$install" 2>/dev/null || cargo add --quiet punctual --path "$install"
cargo update --workspace --offline --quiet 2>/dev/null || cargo update --workspace --quiet
printed=$(CARGO_TARGET_DIR="$repository/target/user_lock" cargo run --quiet)
[[ "$printed" == tick* ]] || { echo "the README's program printed \"$printed\"" >&2; exit 1; }
echo "the README's install line and program work in a new project"

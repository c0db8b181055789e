#!/usr/bin/env bash
# Looks at the README and its companions, the book and the documentation of the API in a browser: wide and narrow,
# light and dark. Nothing may go beyond the page, be broken, lead nowhere or be hard to read (tests/house/look/look.mjs).
#
#   ci/look.sh              builds the site in target/site and looks at it
#   ci/look.sh --pictures   keeps pictures of the main pages as well, in target/site-look
#   ci/look.sh --install    only installs what it needs
#   ci/look.sh --all        looks at the colours of each decision and each page of evidence, and not of one of each
#
# Needs node, npm and chromium (or what CHROMIUM names). As root on Debian it installs what is missing; elsewhere
# it says what was not looked at, and why.
set -euo pipefail
cd "$(dirname "$0")/.."

# have NAME: whether the command NAME is there.
have() { command -v "$1" >/dev/null; }
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}

wanted=()
have node || wanted+=(nodejs)
have npm || wanted+=(npm)
[[ -n "$chromium" ]] || wanted+=(chromium)
if ((${#wanted[@]})) && [[ "$(id -u)" == 0 ]] && have apt-get; then
  { apt-get update && apt-get install --yes --no-install-recommends "${wanted[@]}"; } >/dev/null 2>&1 || true
  chromium=${chromium:-$(command -v chromium || true)}
fi
for tool in node npm; do
  have "$tool" || { echo "not looked at: no $tool here, so the pages cannot be opened; install it"; exit 0; }
done
[[ -n "$chromium" ]] || { echo "not looked at: no browser here; install chromium, or set CHROMIUM"; exit 0; }

[[ "${1:-}" != --install ]] || exit 0

# The scripts are run beside what they need, which is installed outside of the sources.
mkdir -p target/look
cp tests/house/look/* target/look/
if ! cmp --silent target/look/package-lock.json target/look/node_modules/installed; then
  if ! (cd target/look && npm ci --silent --no-audit --no-fund); then
    (cd target/look && npm ping >/dev/null 2>&1) || { echo "not looked at: the registry of npm cannot be reached"; exit 0; }
    echo "npm cannot install what tests/house/look/package-lock.json names" >&2
    exit 1
  fi
  cp target/look/package-lock.json target/look/node_modules/installed
fi

# The site is made again if a source is newer.
site=target/site
newer=$(find . \( -path ./target -o -path ./.git \) -prune -o -type f -newer "$site/docs/index.html" -print -quit 2>/dev/null || true)
if ! [[ -f "$site/docs/index.html" ]] || [[ -n "$newer" ]]; then
  ci/book.sh
fi

documents=(README.md CONTRIBUTING.md CHANGELOG.md benches/peers/README.md crates/*/README.md)
node target/look/render.mjs . "$site" "${documents[@]}"
shots=
extent=kinds
case ${1:-} in
  --pictures) shots=target/site-look ;;
  --all) extent=all ;;
esac
node target/look/look.mjs "$site" "$chromium" "$shots" "$extent" "${documents[@]}"

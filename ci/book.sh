#!/usr/bin/env bash
# Makes a site of the documents: ci/book.sh. The book goes to target/site/docs, and the documentation of the API
# to target/site/api. The other files of the repository go to their places beside them, so that a link
# from a page to a source works in the site as it does in the repository. Fails if mdBook warns, and if a link, an
# anchor or a picture of a page leads nowhere in the site.
#
# Installs mdBook if it is not there (ci/tool.sh), which takes a minute; `$(ci/tool.sh mdbook) build docs/book` builds
# the pages alone.
set -euo pipefail
cd "$(dirname "$0")/.."
site=target/site
mdbook=$(ci/tool.sh mdbook)

log=$(mktemp)
trap 'rm -f "$log"' EXIT
rm -rf "$site"
mkdir -p "$site"
status=0
"$mdbook" build docs/book >"$log" 2>&1 || status=$?
if ((status)) || grep -qE '^ *(WARN|ERROR)' "$log"; then
  cat "$log" >&2
  echo "mdBook has failed or warned" >&2
  exit 1
fi

git ls-files -coz --exclude-standard -- . ':!docs' \
  | while IFS= read -rd '' file; do [[ ! -f $file ]] || printf '%s\0' "$file"; done \
  | tar -c --null -T - | tar -x -C "$site"

# The API: what another build has left in the folder is not of the public interface.
target=${CARGO_TARGET_DIR:-target}
rm -rf "$target/doc"
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --all-features --quiet
cp -r "$target/doc" "$site/api"

# A page links to the API on the documentation site, for readers of the repository. In the site it is at hand.
published=https://docs.rs/punctual/latest/
while IFS= read -r page; do
  inside=${page#"$site/"}
  up=$(sed 's|[^/]*/|../|g; s|[^/]*$||' <<<"$inside")
  sed -i "s|href=\"$published|href=\"${up}api/|g" "$page"
done < <(grep -rlF "href=\"$published" "$site/docs" --include='*.html')

# Each link and picture of a page that is within the site: the page, what stands there, the file that it means, and the
# anchor.
links() {
  find "$site/docs" -name '*.html' -exec grep -oHE '(href|src)="[^"]+"' {} + | sort -u | awk '
    {
      page = $0; sub(/:(href|src)=".*/, "", page)
      link = $0; sub(/.*(href|src)="/, "", link); sub(/"$/, "", link)
      if (link ~ /^[a-z]+:/ || link ~ /^\/\//) next
      anchor = ""; file = link
      if (i = index(link, "#")) { anchor = substr(link, i + 1); file = substr(link, 1, i - 1) }
      if (file == "" && anchor == "") next
      n = split(file == "" ? page : page "/../" file, part, "/"); depth = 0
      for (i = 1; i <= n; i++) {
        if (part[i] == "..") depth--
        else if (part[i] != "." && part[i] != "") path[++depth] = part[i]
      }
      whole = path[1]; for (i = 2; i <= depth; i++) whole = whole "/" path[i]
      print page "\t" (file == "" ? "-" : file) "\t" whole "\t" anchor
    }'
}

# mdBook takes every link to a file `.md` for a link to one of its pages. Those to others are turned back.
links | while IFS=$'\t' read -r page link file _; do
  if [[ ! -e $file && $file == *.html && -f ${file%.html}.md ]]; then
    sed -i "s|href=\"${link%.html}\.html|href=\"${link%.html}.md|g" "$page"
  fi
done

checked=0
broken=0
while IFS=$'\t' read -r page link file anchor; do
  checked=$((checked + 1))
  if [[ ! -f $file ]]; then
    echo "$page: $link leads nowhere" >&2
    broken=$((broken + 1))
  elif [[ -n $anchor && $file == *.html ]] && ! grep -qF "id=\"$anchor\"" "$file"; then
    echo "$page: there is no #$anchor in $file" >&2
    broken=$((broken + 1))
  fi
done < <(links)
((checked > 1500)) || { echo "only $checked links were found" >&2; exit 1; }
((broken == 0)) || { echo "$broken of $checked links are broken" >&2; exit 1; }

pages=$(find "$site/docs" -name '*.html' | wc -l)
[[ -f $site/api/punctual/index.html ]] || { echo "the site has no documentation of the API" >&2; exit 1; }
printf '%s pages, %s links; the book takes %s, the API %s, the site with the sources %s: %s\n' "$pages" "$checked" \
  "$(du -sh "$site/docs" | cut -f1)" "$(du -sh "$site/api" | cut -f1)" "$(du -sh "$site" | cut -f1)" \
  "$site/docs/index.html"

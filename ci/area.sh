#!/usr/bin/env bash
# The areas of ci/areas.toml: what only a change of certain files can break.
#
#   ci/area.sh             says of each area whether its contents are those with which it last passed
#   ci/area.sh NAME ...    runs these areas, and notes in ci/passed/NAME with which contents they have passed
#   ci/area.sh changed     runs each area whose contents are others
#   ci/area.sh --prepare NAME   installs what an area needs
#   ci/area.sh --files NAME   prints the files of an area
#   ci/area.sh --unnamed   prints the files that no area names
#
# A record is a hash: of the area's entry in the table, and of the contents of its files, committed or not. A file that
# no area names counts as one of every area. docs/testing.md says what a record proves.
set -euo pipefail
cd "$(dirname "$0")/.."
table=ci/areas.toml
export CARGO_INCREMENTAL=0

# files PATHSPEC ...: the files that there are, whether they are committed or not.
files() {
  git ls-files -co --exclude-standard -- "$@" | sort -u | while IFS= read -r file; do [[ ! -f $file ]] || printf '%s\n' "$file"; done
}

# The paths are patterns of git, and not of this shell.
set -f
areas=()
declare -A paths comments prepare run
# Between tabs an empty value would be none.
while IFS=$'\t' read -r name these of before command; do
  areas+=("$name")
  paths[$name]=$these comments[$name]=${of%-} prepare[$name]=${before%-} run[$name]=$command
done < <(ci/table.sh "$table" area name paths comments prepare run | sed -e ':again' -e 's/\t\t/\t-\t/' -e 't again')

# An area at a time: what one leaves out another may name.
unnamed() {
  local name
  # shellcheck disable=SC2086
  comm -23 <(files . | grep -v '^ci/passed/') <(for name in "${areas[@]}"; do files ${paths[$name]}; done | sort -u)
}
unnamed=$(unnamed)

# contents NAME: the hash of the area.
contents() {
  local name=$1 each
  # shellcheck disable=SC2086
  each=$(files ${paths[$name]}; printf '%s' "$unnamed")
  {
    printf '%s\n' "${paths[$name]}" "${comments[$name]}" "${run[$name]}" "$each"
    git hash-object --stdin-paths <<<"$each"
    # shellcheck disable=SC2086
    [[ -z ${comments[$name]} ]] || files ${comments[$name]} | xargs grep -hE '^ *//[/!]'
  } | git hash-object --stdin
}

known() { [[ -n ${run[$1]+set} ]] || { echo "there is no area $1 in $table" >&2; exit 2; }; }

# has_passed NAME: whether its contents are those of its record.
has_passed() { [[ $(cat "ci/passed/$1" 2>/dev/null) == "$(contents "$1")" ]]; }

run_area() {
  local name=$1 before
  before=$(contents "$name")
  printf '== the area %s: %s\n' "$name" "${run[$name]}"
  bash -euo pipefail -c "${prepare[$name]}" </dev/null >/dev/null
  # The shell of a command has its patterns.
  bash -euo pipefail -c "${run[$name]}" </dev/null
  [[ $(contents "$name") == "$before" ]] || { echo "the area $name has passed, and was changed meanwhile: not noted"; return 0; }
  mkdir -p ci/passed
  printf '%s\n' "$before" >"ci/passed/$name"
}

case ${1:-} in
  --unnamed) [[ -z "$unnamed" ]] || printf '%s\n' "$unnamed" ;;
  --prepare) known "$2" && bash -euo pipefail -c "${prepare[$2]}" </dev/null ;;
  --files)
    known "$2"
    # shellcheck disable=SC2086
    files ${paths[$2]}
    # shellcheck disable=SC2086
    [[ -z ${comments[$2]} ]] || files ${comments[$2]}
    ;;
  '')
    for name in "${areas[@]}"; do
      if has_passed "$name"; then echo "passed   $name"; else echo "changed  $name"; fi
    done
    ;;
  changed)
    for name in "${areas[@]}"; do has_passed "$name" || run_area "$name"; done
    ;;
  *)
    for name in "$@"; do known "$name"; done
    for name in "$@"; do run_area "$name"; done
    ;;
esac

#!/usr/bin/env bash
# Reads the tables of ci: ci/table.sh FILE KIND KEY ... prints a line for each table of that kind, `[[KIND]]` or
# `[KIND.NAME]`, in their order, with the values of these keys between tabs. The key `name` of the second form is its NAME.
# An array becomes its elements, with spaces between. As much of TOML as these files use: strings without escapes,
# numbers, and arrays of strings.
set -euo pipefail
file=$1 kind=$2
shift 2
awk -v kind="$kind" -v keys="$*" '
  function show(i, line) {
    if (!inside) return
    for (i = 1; i <= count; i++) line = line (i > 1 ? "\t" : "") value[wanted[i]]
    print line
  }
  BEGIN { count = split(keys, wanted, " ") }
  /^[ \t]*#/ || /^[ \t]*$/ { next }
  /^\[/ {
    show()
    split("", value)
    head = $0
    gsub(/[][ \t]/, "", head)
    inside = head == kind || index(head, kind ".") == 1
    value["name"] = substr(head, length(kind) + 2)
    next
  }
  !inside { next }
  {
    line = $0
    if (!open) {
      at = index(line, "=")
      key = substr(line, 1, at - 1); gsub(/[ \t"]/, "", key)
      line = substr(line, at + 1)
      sub(/^[ \t]+/, "", line)
      text = ""
      if (line ~ /^\[/) open = 1
    }
    if (!open) { sub(/^"/, "", line); sub(/"[ \t]*$/, "", line); value[key] = line; next }
    while (match(line, /"[^"]*"/)) {
      text = text (text == "" ? "" : " ") substr(line, RSTART + 1, RLENGTH - 2)
      line = substr(line, RSTART + RLENGTH)
    }
    if (line ~ /\]/) { open = 0; value[key] = text }
  }
  END { show() }' "$file"

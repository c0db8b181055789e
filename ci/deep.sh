#!/usr/bin/env bash
# All slices of the search, once: ci/deep.sh, before a release. It takes a night, and goes on after a slice that fails.
exec "$(dirname "$0")/search.sh" --all

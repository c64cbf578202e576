#!/usr/bin/env bash
# Runs the benchmarks, bench/<name>/run, against the private server: all, or those named.
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$PGQUAD_ROOT"
find_state_dir
use_private_server pgquad
shopt -s nullglob
runs=()
for name in "$@"; do runs+=("bench/$name/run"); done
[ ${#runs[@]} -gt 0 ] || runs=(bench/*/run)
[ ${#runs[@]} -gt 0 ] || die "there is no benchmark yet"
for run in "${runs[@]}"; do
    [ -x "$run" ] || die "there is no $run"
    step "$run"
    "$run"
done

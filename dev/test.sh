#!/usr/bin/env bash
# Runs the test suites (all, or those named) and ends with the line "N passed, N failed, N skipped".
# Exit status 1 when anything failed. What a suite is, and how to add one: test/README.md.
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$PGQUAD_ROOT"

# The suites that need a server; each is a folder of test/.
SERVER_SUITES="upgrade pgtap docs isolation races join crash standby soak badinput bsbm w3c http workbench differential"
SERVER_SUITES="$SERVER_SUITES remote sqlsmith cluster"
ALL="fmt clippy shell python walls pages image dependencies unit $SERVER_SUITES"
find_state_dir
logs=$PGQUAD_ROOT/target/test-logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0
summary=()
# Suites that have failed, and how many lines of the output, of how many characters, say at its end why.
failures=() WHY_LINES=40 WHY_WIDTH=300

# Books a suite: name, passed, failed, skipped, remark.
book() {
    local verdict=PASS took=$((SECONDS - suite_began))
    if [ "$3" -gt 0 ]; then verdict=FAIL; elif [ "$2" -eq 0 ]; then verdict=SKIPPED; fi
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    summary+=("$(printf '%-8s %-12s %5d passed %4d failed %4d skipped %5d s  %s' \
        "$verdict" "$1" "$2" "$3" "$4" "$took" "${5:-}")")
    if [ "$verdict" = FAIL ]; then failures+=("$1"); fi
    if [ "$verdict" = FAIL ]; then
        say "FAIL $1 after $took s (log: $logs/$1.log)"
    else
        say "$verdict $1 ($took s)${5:+: $5}"
    fi
}

# Runs a command that either succeeds or not, as one test.
one_test() {
    local name=$1
    shift
    if "$@" 2>&1 | tee "$logs/$name.log"; then book "$name" 1 0 0; else book "$name" 0 1 0; fi
}

# Seconds that a suite may take: five times the longest (cluster) on two cores of its own, so that a busy machine gets
# there. What hangs fails, and the suites after it still run. 0: no limit.
SUITE_SECONDS=${PGQUAD_SUITE_SECONDS:-2400}

# Runs a suite's script. Its last line says how many tests passed, failed and were skipped; without such a line the
# exit status is the one test there is (77: skipped).
script_suite() {
    local name=$1 status=0 counts
    shift
    if [ ! -x "$1" ]; then
        book "$name" 0 0 1 "there is no $1"
        return
    fi
    (use_private_server pgquad && timeout -k 10 "$SUITE_SECONDS" "$@") 2>&1 | tee "$logs/$name.log" || status=$?
    if [ $status -eq 124 ] || [ $status -eq 137 ]; then
        say "FAIL $name: not done after $SUITE_SECONDS s; the last check that was: $(last_check "$logs/$name.log")" |
            tee -a "$logs/$name.log"
        book "$name" 0 1 0 "not done after $SUITE_SECONDS s"
        return
    fi
    counts=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped.*$/\1 \2 \3/p' "$logs/$name.log" |
        tail -n 1)
    case $counts in
    '')
        case $status in
        0) book "$name" 1 0 0 ;;
        77) book "$name" 0 0 1 "$(tail -n 1 "$logs/$name.log")" ;;
        *) book "$name" 0 1 0 "exit status $status" ;;
        esac
        ;;
    *)
        local p f s
        read -r p f s <<<"$counts"
        if [ $status -ne 0 ] && [ $status -ne 77 ] && [ "$f" -eq 0 ]; then f=1; fi
        book "$name" "$p" "$f" "$s"
        ;;
    esac
}

# Why suites have failed: the lines of each log that say so, or its last ones. So the end of the output tells what is
# wrong.
say_failures() {
    local suite lines share=$((WHY_LINES / ${#failures[@]}))
    [ "$share" -ge 4 ] || share=4
    # What says so: a check of a script, a test of cargo, an assertion of pgTAP, a compiler, rustfmt, shellcheck.
    local signs='^FAIL|^test .* FAILED$|^not ok|panicked at|^error|^Diff in|^In .* line [0-9]+:'
    for suite in "${failures[@]}"; do
        say "$suite:"
        if [ ! -s "$logs/$suite.log" ]; then continue; fi
        lines=$(grep -aE "$signs" "$logs/$suite.log" || tail -n "$share" "$logs/$suite.log")
        printf '%s\n' "$lines" | cut -c "1-$WHY_WIDTH" | head -n "$share"
    done | head -n "$WHY_LINES"
}

# Citus, where the material for tests has a way to build it and a suite wants it. It is there before the first server
# starts.
build_citus() {
    local build=$PGQUAD_SHARED/citus/build.sh
    if has_citus || [ ! -e "$build" ] || [ "$PG_MAJOR" != 15 ]; then return 0; fi
    step "building Citus for the cluster suites (minutes)"
    quietly bash "$build" || warn "Citus does not build: the cluster suites are skipped"
}

# The suites that need a server share the private one; builds, installs and starts it once.
server_ready=
need_server() {
    if [ -z "$server_ready" ]; then
        if dev/install.sh && dev/server.sh up; then server_ready=yes; else server_ready=no; fi
    fi
    [ "$server_ready" = yes ]
}

sql_suite() {
    if need_server; then script_suite "$@"; else book "$1" 0 1 0 "no server"; fi
}

# rustfmt leaves comments as they are, and knows no SQL.
check_format() { cargo fmt --all --check && "$PYTHON" dev/check-comments.py && "$PYTHON" dev/check-readmes.py; }

suite_unit() {
    local status=0 counts
    timeout -k 10 "$SUITE_SECONDS" cargo test --workspace --exclude pgquad --no-fail-fast 2>&1 |
        tee "$logs/unit.log" || status=$?
    local results='^test result: .* ([0-9]*) passed; ([0-9]*) failed; ([0-9]*) ignored.*'
    counts=$(sed -nE "s/$results/\1 \2 \3/p" "$logs/unit.log" |
        awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }')
    local p f s
    read -r p f s <<<"$counts"
    if [ $status -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
    book unit "$p" "$f" "$s"
}

# Licences, bans and sources of the dependencies; known vulnerabilities where their list can be had.
suite_dependencies() {
    local deny advisories=0
    if ! deny=$(cargo_deny_program); then
        book dependencies 0 0 1 "cargo-deny is not installed"
        return
    fi
    if ! "$deny" --offline check licenses bans sources 2>&1 | tee "$logs/dependencies.log"; then
        book dependencies 0 1 0
    elif ! timeout 120 "$deny" fetch db >/dev/null 2>&1; then
        book dependencies 1 0 1 "the list of advisories cannot be had"
    else
        "$deny" check advisories 2>&1 | tee -a "$logs/dependencies.log" || advisories=1
        book dependencies $((2 - advisories)) $advisories 0
    fi
}

run_suite() {
    step "suite $1 ($((SECONDS - started)) s so far)"
    suite_began=$SECONDS
    rm -f "$logs/$1.log"
    case $1 in
    fmt) one_test fmt check_format ;;
    clippy) one_test clippy cargo clippy --workspace --all-targets -- -D warnings ;;
    shell)
        if command -v shellcheck >/dev/null; then
            local scripts
            local signs='^(#!/usr/bin/env bash|#!/bin/(ba)?sh|# shellcheck shell)'
            mapfile -t scripts < <(git ls-files 2>/dev/null | while read -r file; do
                if [ -f "$file" ] && head -n 2 "$file" | grep -qaE "$signs"; then echo "$file"; fi
            done)
            one_test shell shellcheck -x "${scripts[@]}"
        else
            book shell 0 0 1 "shellcheck is not installed"
        fi
        ;;
    python)
        local ruff
        if ruff=$(ruff_program); then
            one_test python "$ruff" check --no-cache .
        else
            book python 0 0 1 "ruff is not installed"
        fi
        ;;
    dependencies) suite_dependencies ;;
    walls) one_test walls dev/check-walls.sh ;;
    pages) one_test pages "$PYTHON" dev/book/check_pages.py ;;
    image) one_test image dev/check-image.sh ;;
    unit) suite_unit ;;
    cluster-all)
        SUITE_SECONDS=0 sql_suite cluster-all test/cluster/run cluster dictionary stores transactions refusals \
            moves-all faults-all disk sockets serving status push firewall docs soak-all suites-all
        ;;
    *)
        case " $SERVER_SUITES " in
        *" $1 "*) sql_suite "$1" "test/$1/run" ;;
        *) die "no such suite: $1 (there are: $ALL)" ;;
        esac
        ;;
    esac
}

started=$SECONDS
suites=("$@")
[ ${#suites[@]} -gt 0 ] || read -ra suites <<<"$ALL"
case " ${suites[*]} " in *" cluster"*) build_citus ;; esac
for suite in "${suites[@]}"; do run_suite "$suite"; done

if [ ${#failures[@]} -gt 0 ]; then
    step "what has failed"
    say_failures || true
fi
step "summary ($((SECONDS - started)) s)"
printf '%s\n' "${summary[@]}"
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

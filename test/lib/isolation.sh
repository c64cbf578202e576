# shellcheck shell=bash
# Runs isolation specs (format: PostgreSQL's src/test/isolation/README). Sourced after dev/lib.sh, never run.

# run_specs SUITE [--accept] [SPEC...]: the specs of test/SUITE (all, or those named) against the server of PGHOST and
# PGPORT, in a database of their own. A spec's output has to equal expected/<spec>.out or expected/<spec>_1.out;
# --accept writes the expected files. Ends with the line that `make test` reads.
run_specs() {
    local suite=$1 accept='' spec
    local here=$PGQUAD_ROOT/test/$suite results=$PGQUAD_ROOT/target/$suite database=pgquad_$suite
    shift
    mkdir -p "$results"

    local tester
    tester=$(pg_pkglibdir)/pgxs/src/test/isolation/isolationtester
    if [ ! -x "$tester" ]; then
        say "SKIPPED $suite: no $tester"
        say "0 passed, 0 failed, 1 skipped"
        return
    fi
    if [ "${1:-}" = --accept ]; then
        accept=yes
        shift
    fi
    local specs=("$@")
    [ ${#specs[@]} -gt 0 ] || mapfile -t specs < <(cd "$here/specs" && ls -- *.spec)

    # A run that was interrupted may have left prepared transactions, which keep the database from being dropped.
    if [ -n "$(run_psql -Atc "select 1 from pg_prepared_xacts where database = '$database'")" ]; then
        run_psql -d "$database" <<'SQL'
select format('rollback prepared %L', gid) from pg_prepared_xacts where database = current_database() \gexec
SQL
    fi
    run_psql -c "drop database if exists $database with (force)" -c "create database $database"
    run_psql -d "$database" -c "create extension pgquad"

    local passed=0 failed=0 name out
    for spec in "${specs[@]}"; do
        name=$(basename "$spec" .spec)
        out=$results/$name.out
        # A spec that hangs is a failure, not the end of the run.
        timeout 300 "$tester" "host=$PGHOST port=$PGPORT user=$PGUSER dbname=$database application_name=$suite/$name" \
            <"$here/specs/$name.spec" >"$out" 2>&1 || echo "exit status $?" >>"$out"
        if [ -n "$accept" ]; then
            cp "$out" "$here/expected/$name.out"
        elif cmp -s "$out" "$here/expected/$name.out" || cmp -s "$out" "$here/expected/${name}_1.out"; then
            say "PASS $suite/$name"
            passed=$((passed + 1))
        else
            say "FAIL $suite/$name"
            diff -u "$here/expected/$name.out" "$out" | head -n 60 || true
            failed=$((failed + 1))
        fi
    done
    run_psql -c "drop database $database with (force)"
    say "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ]
}

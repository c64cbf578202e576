#!/usr/bin/env bash
# The installed script of the extension as a file of the repository.
#   dev/sql.sh version    prints the version of the sources
#   dev/sql.sh installed  prints the installed script without the comments that pgrx makes
#   dev/sql.sh check      compares that with sql/pgquad--VERSION.sql as it is committed
#   dev/sql.sh write      writes that file anew where it differs
set -euo pipefail
# shellcheck source=dev/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$PGQUAD_ROOT"

version() { sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml; }

# pgrx writes where each object stands in the sources, and its Rust types, into comments. They go: a moved line is no
# change of the script.
installed() {
    local script
    script=$(pg_sharedir)/extension/pgquad--$(version).sql
    [ -e "$script" ] || die "$script is not there: make install"
    echo "-- The installed script of pgquad $(version). Made by \`make sql\`, never by hand."
    echo
    sed -E -e '\#^/\* </?(begin|end) connected objects> \*/$#d' -e '\#^/\*$#,\#^\*/$#d' \
        -e '/^-- extension\/.*\.rs:[0-9]+$/d' -e '/^-- pgquad::/d' -e '/^-- (requires|creates):$/d' \
        -e '/^--   [^ ]+$/d' -e '/^-- (bootstrap|finalize)$/d' -e '/^-- Skipped due to /d' \
        -e 's# /\* .* \*/$##' -e 's/^CREATE  /CREATE /' "$script" | sed '/./,$!d' | cat -s
}

# The paragraphs of a script, one a line, sorted: pgrx puts independent objects into an order that changes from build to
# build.
paragraphs() { awk -v RS= '{ gsub(/[ \t]*\n/, "\001"); print }' | LC_ALL=C sort; }

# Says what differs; true when nothing does.
differences() { # file
    diff <(paragraphs <"$1") <(installed | paragraphs) | grep '^[<>]' | tr '\001' '\n' || true
}

# The file in the work tree follows every build (dev/install.sh): what counts is the one that is committed.
check() {
    local file found
    file=sql/pgquad--$(version).sql
    found=$(differences <(git show "HEAD:$file" 2>/dev/null || cat "$file"))
    [ -n "$found" ] || return 0
    printf '%s\n' "$found"
    echo "$file (<), as committed, is not what the sources make (>): make sql, commit it, and read docs/upgrades.md"
    return 1
}

write() {
    local file
    file=sql/pgquad--$(version).sql
    if [ -e "$file" ] && [ -z "$(differences "$file")" ]; then return; fi
    installed >"$file.new"
    mv "$file.new" "$file"
    say "$file is written"
}

case ${1:-} in
version | installed | check | write) "$1" ;;
*) die "usage: dev/sql.sh version | installed | check | write" ;;
esac

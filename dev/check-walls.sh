#!/usr/bin/env bash
# The walls of the PostgreSQL-facing crate: its ground floor imports nothing from above. And no files of a crate import
# each other in a circle.
set -euo pipefail
cd "$(dirname "$0")/../extension/pgquad/src"
failed=0

# Names each import of folder $1 that is not in the pattern $2.
only() {
    local found
    if found=$(grep -rnoE --include='*.rs' '\bcrate::\{?[a-z_]+' "$1" | grep -vE ":crate::($2)\$"); then
        echo "$1 may import $2 only:"
        echo "$found"
        failed=1
    fi
}

only pg 'pg'
only settings.rs 'pg'
only catalog 'catalog|pg'
only storage 'catalog|pg|settings|storage'

cd ../..
crates=(btree cluster exec filter pgquad reader remote sort sparql term)
"${PYTHON:-/usr/bin/python3}" ../dev/check-circles.py "${crates[@]}" || failed=1
exit $failed

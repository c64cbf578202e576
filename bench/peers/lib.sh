# shellcheck shell=bash
# What is set here is used by the scripts that read this file.
# shellcheck disable=SC2034
# Common ground of the peers' scripts. Each is called with a verb:
#   setup            installs the store below $PGQUAD_PEERS (default target/bench-peers), from a package registry
#   version          name and version, one line; fails when it is not set up
#   load FILE DIR    loads an N-Triples file into a new store in a directory
#   optimize DIR     puts that store into the order it likes best for reading
#   serve DIR PORT SECONDS
#                    serves that store on 127.0.0.1 until it is killed; gives up on queries after a time where it can
#   path             what comes after http://127.0.0.1:PORT in the URL of the endpoint
set -euo pipefail
PEERS=${PGQUAD_PEERS:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)/target/bench-peers}
# Memory for the stores that want to be told.
MEGABYTES=${PGQUAD_PEER_MEGABYTES:-4096}
MAVEN=https://repo1.maven.org/maven2

# Fetches a file once.
fetch() {
    [ -s "$2" ] || { mkdir -p "$(dirname "$2")" && curl -sfL -o "$2.part" "$1" && mv "$2.part" "$2"; }
}

# Most have nothing to do.
optimize() { :; }

# Runs the verb that the script was called with.
run_verb() {
    case ${1:-} in
    setup | version | load | optimize | serve | path) "$@" ;;
    *)
        sed -n 's/^#   //p' "${BASH_SOURCE[0]}" >&2
        return 2
        ;;
    esac
}

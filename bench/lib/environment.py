"""Where things are: the environment that dev/lib.sh sets up for scripts, taken over into Python."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NAMES = ["PG_CONFIG", "PGQUAD_STATE", "PGQUAD_SHARED"]

_script = 'set -e; . dev/lib.sh; find_state_dir >&2; printf "%s\\n" ' + " ".join(f'"${name}"' for name in NAMES)
_values = subprocess.run(["bash", "-c", _script], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
os.environ.update(zip(NAMES, _values, strict=True))
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))

SHARED = os.environ["PGQUAD_SHARED"]
STATE = os.environ["PGQUAD_STATE"]

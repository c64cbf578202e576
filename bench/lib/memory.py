"""Memory of the machine before something is timed."""

import mmap
import os

# At most as much as a load of 10 million triples takes on all nodes, with the files it writes.
MAX_BYTES = 6 << 30


def touch():
    """Writes to half of the free memory and gives it back. A virtual machine returns free pages to its host after some
    seconds, and the next write to each of them waits for the host. A load of 10 million triples into eight nodes takes
    12.4 s after this, and 13.9 to 17.1 s without: it depends on what ran before."""
    page = os.sysconf("SC_PAGE_SIZE")
    size = min(os.sysconf("SC_AVPHYS_PAGES") * page // 2, MAX_BYTES) // page * page
    with mmap.mmap(-1, size) as memory:
        memory[::page] = bytes(size // page)

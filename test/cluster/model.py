"""An RDF store as a Python set: what the answers have to be. Knows nothing of SQL, PostgreSQL or Citus."""

import random
from collections import Counter, defaultdict


def random_quads(count, seed):
    """Distinct quads of 64-bit ids: few predicates and graphs, objects that are subjects elsewhere, some odd ids."""
    rng = random.Random(seed)
    subjects = [rng.randrange(1, 2**59) for _ in range(max(4, count // 8))]
    predicates = [rng.randrange(1, 2**20) for _ in range(12)]
    odd = [0, -1, 1, 2**63 - 1, -(2**63)]
    quads = set()
    while len(quads) < count:
        kind = rng.random()
        if kind < 0.55:
            object_ = rng.choice(subjects)
        elif kind < 0.99:
            object_ = rng.randrange(2**59, 2**62)
        else:
            object_ = rng.choice(odd)
        subject = rng.choice(subjects) if rng.random() < 0.995 else rng.choice(odd)
        quads.add((subject, rng.choice(predicates), object_, rng.choice([0, 0, 0, 7, 8])))
    return sorted(quads)


class Model:
    """A set of quads (s, p, o, g) with the questions that the cluster is asked."""

    def __init__(self, quads=()):
        self.quads = set(quads)

    def insert(self, quads):
        self.quads |= set(quads)

    def delete(self, condition):
        """Removes the quads for which the function of (s, p, o, g) holds; returns how many."""
        gone = {quad for quad in self.quads if condition(*quad)}
        self.quads -= gone
        return len(gone)

    def where(self, condition):
        """The matching quads, sorted."""
        return sorted(quad for quad in self.quads if condition(*quad))

    def count_by(self, column):
        """Sorted (value, number of quads) of one column, given by its place in the quad."""
        return sorted(Counter(quad[column] for quad in self.quads).items())

    def path_join(self, first, second):
        """Bag of (s1, o1, o2): quads with predicate `first` whose object is the subject of a quad with `second`."""
        by_subject = defaultdict(list)
        for s, p, o, _ in self.quads:
            if p == second:
                by_subject[s].append(o)
        return sorted((s, o, end) for s, p, o, _ in self.quads if p == first for end in by_subject[o])

    def star_join(self, first, second):
        """Bag of (s, o1, o2): objects of two predicates at the same subject."""
        by_subject = defaultdict(list)
        for s, p, o, _ in self.quads:
            if p == second:
                by_subject[s].append(o)
        return sorted((s, o, other) for s, p, o, _ in self.quads if p == first for other in by_subject[s])

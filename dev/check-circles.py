"""Checks that no files of a crate import each other in a circle: dependencies go one way. Names the files of each
circle.

An import is a path that begins with crate, super or self, with a module of the file's own, or with a name that the
file imports. What a file re-exports counts as an import of the file that has it. Tests at the end of a file do not
count; nor does what a crate exports at its root, which belongs to no file. `dev/check-circles.py CRATE..` takes the
folders of crates.
"""

import os
import re
import sys

COMMENT = re.compile(r"//[^\n]*")
TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod \w+ \{")
USE = re.compile(r"(\bpub(?:\([a-z]+\))?\s+)?\buse\s+([^;]*);")
PATH = re.compile(r"(?<![\w:])([A-Za-z_]\w*)((?:::[A-Za-z_]\w*)+)")


def modules(root):
    """The file of each module, by the names on its path."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".rs") and name != "lib.rs":
                path = os.path.join(folder, name)
                parts = os.path.relpath(path, root)[:-3].split(os.sep)
                found[tuple(parts[:-1] if parts[-1] == "mod" else parts)] = path
    return found


def expanded(tree, prefix=""):
    """The paths of a tree of imports: `a::{b, c}` is `a::b` and `a::c`."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        yield prefix + head.split(" as ")[0].strip()
        return
    depth, item = 0, ""
    for char in rest.rpartition("}")[0] + ",":
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            if item.strip():
                yield from expanded(item, prefix + head)
            item = ""
        else:
            item += char


class Source:
    """What a file imports and re-exports, as paths from the root of the crate."""

    def __init__(self, module, text, children):
        self.module = module
        self.children = children
        self.exports = {}
        self.paths = []
        text = TESTS.split(COMMENT.sub("", text))[0]
        names = {}
        for public, tree in USE.findall(text):
            for path in map(self.absolute, expanded(" ".join(tree.split()))):
                if path is None:
                    continue
                name = path[-1]
                names[name] = path
                if public:
                    self.exports[name] = path
                else:
                    self.paths.append(path)
        for first, rest in PATH.findall(USE.sub("", text)):
            path = self.absolute(first + rest)
            if path is None and first in names:
                path = names[first] + tuple(rest[2:].split("::"))
            if path is not None:
                self.paths.append(path)

    def absolute(self, path):
        """A path of the crate from its root; None for one of another crate."""
        first, *rest = (part.strip() for part in path.split("::"))
        if rest and rest[-1] == "self":
            rest.pop()
        if first in self.children:
            return self.module + (first, *rest)
        base = {"crate": (), "self": self.module, "super": self.module[:-1]}.get(first)
        if base is None:
            return None
        while rest and rest[0] == "super":
            base, rest = base[:-1], rest[1:]
        return base + tuple(rest) or None


def file_of(path, sources):
    """The module whose file has what a path names; None for the root of the crate."""
    found = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in sources), None)
    rest = path[len(found) :] if found else ()
    exports = sources[found].exports if found else {}
    if rest and rest[0] in exports and exports[rest[0]] != path:
        return file_of(exports[rest[0]] + rest[1:], sources)
    return found


def reached(graph, start):
    """What can be reached from a module over one import or more."""
    seen, todo = set(), list(graph[start])
    while todo:
        module = todo.pop()
        if module not in seen:
            seen.add(module)
            todo += graph[module]
    return seen


def circles(root):
    """Sets of files that import each other."""
    files = modules(root)
    sources = {}
    for module, path in files.items():
        children = {other[-1] for other in files if other[:-1] == module}
        with open(path, encoding="utf-8") as file:
            sources[module] = Source(module, file.read(), children)
    graph = {}
    for module, source in sources.items():
        found = {file_of(path, sources) for path in source.paths}
        graph[module] = found - {module, None}
    reach = {module: reached(graph, module) for module in graph}
    circular = [module for module in graph if module in reach[module]]
    found = {frozenset(other for other in reach[module] if module in reach[other]) for module in circular}
    return [sorted(files[module] for module in circle) for circle in found]


def main():
    found = [circle for crate in sys.argv[1:] for circle in circles(os.path.join(crate, "src"))]
    for circle in found:
        print("files import each other in a circle: " + " ".join(circle))
    sys.exit(1 if found else 0)


main()

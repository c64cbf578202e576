"""Checks that no files of a crate import each other in a circle: dependencies go one way. Names the files of each
circle.

An import is a path that begins with crate, super or self, in a `use` or in the code. What a crate exports at its root
belongs to no file. `dev/check-circles.py CRATE..` takes the folders of crates.
"""

import os
import re
import sys

COMMENT = re.compile(r"//[^\n]*")
USE = re.compile(r"\buse\s+((?:crate|super|self)\b[^;]*);")
PATH = re.compile(r"\b(?:crate|super|self)(?:::[A-Za-z_]\w*)+")


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


def imports(module, text, known):
    """The modules that a file imports."""
    text = COMMENT.sub("", text)
    paths = PATH.findall(text)
    for tree in USE.findall(text):
        paths += expanded(" ".join(tree.split()))
    for path in paths:
        first, *parts = (part.strip() for part in path.split("::"))
        base = {"crate": (), "self": module, "super": module[:-1]}[first]
        while parts and parts[0] == "super":
            base, parts = base[:-1], parts[1:]
        whole = base + tuple(parts)
        target = next((whole[:n] for n in range(len(whole), 0, -1) if whole[:n] in known), module)
        if target != module:
            yield target


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
    graph = {}
    for module, path in files.items():
        with open(path, encoding="utf-8") as file:
            graph[module] = set(imports(module, file.read(), files))
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

"""Preprocessor of mdbook: puts pages that are not in docs/ into the site, and makes links between pages of the tree
links of the site.

docs/SUMMARY.md names such pages as `../extension/btree/README.md`. Their place in the site is that of the tree,
`extension/btree/index.html`; a page of docs/ is at the top, `query.html`. A link to a file that the site does not have
becomes plain text.
Protocol: https://rust-lang.github.io/mdBook/for_developers/preprocessors.html
"""

import json
import os
import sys

from markdown import with_links

DOCS = "docs"


def place(chapter):
    """The path of a page in the site, as a Markdown file, for its path in SUMMARY.md."""
    path = os.path.normpath(os.path.join(DOCS, chapter))
    if path.startswith(DOCS + "/"):
        return os.path.relpath(path, DOCS)
    folder, name = os.path.split(path)
    return os.path.join(folder, "index.md" if name == "README.md" else name)


def chapters(items):
    """All chapters that have a page."""
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            if chapter.get("source_path"):
                yield chapter
            yield from chapters(chapter["sub_items"])


def rewrite(text, source, places):
    """The text of the page `source` of the tree with its links as the site needs them."""
    here = os.path.dirname(places[source])

    def link(is_image, label, target):
        path, _, anchor = target.partition("#")
        if not path:
            return f"{'!' * is_image}[{label}]({target})"
        file = os.path.normpath(os.path.join(os.path.dirname(source), path))
        if file in places:
            there = places[file]
        elif file.startswith(DOCS + "/") and os.path.isfile(file):
            there = os.path.relpath(file, DOCS)
        else:
            return label
        return f"{'!' * is_image}[{label}]({os.path.relpath(there, here or '.')}{'#' * bool(anchor)}{anchor})"

    return with_links(text, link)


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    pages = list(chapters(book["items"] if "items" in book else book["sections"]))
    sources = [os.path.normpath(os.path.join(DOCS, page["source_path"])) for page in pages]
    places = {source: place(page["source_path"]) for source, page in zip(sources, pages)}
    for source, page in zip(sources, pages):
        page["content"] = rewrite(page["content"], source, places)
        page["path"] = places[source]
    json.dump(book, sys.stdout)


main()

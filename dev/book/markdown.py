"""Links, headings and anchors of Markdown pages, as GitHub and mdbook see them."""

import re

FENCE = re.compile(r"^ *(```|~~~)")
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(([^()\s]+)\)")
# A span of code, or a link: what stands within a span is no link.
CODE_OR_LINK = re.compile(r"(?P<code>`+)(?:.+?)(?P=code)|" + LINK.pattern)
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$")


def outside_fences(text):
    """Lines with their numbers, without fenced blocks of code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
            # A paragraph ends here.
            yield number, ""
        elif not fenced:
            yield number, line


def prose(text):
    """Lines with their numbers, without blocks of code."""
    blank_before, indented = True, False
    for number, line in outside_fences(text):
        # An indented block begins after an empty line; within a list such lines go on with the text.
        indented = line.startswith("    ") and (blank_before or indented) and not line.lstrip().startswith(("-", "*"))
        blank_before = not line.strip()
        if not indented and line:
            yield number, line


def is_relative(target):
    """Whether the target of a link is a file of the tree, or a heading of the page."""
    return not re.match(r"[a-z][a-z0-9+.-]*:|//", target)


def links(text):
    """Line and target of each link to the tree."""
    for number, line in prose(text):
        for match in CODE_OR_LINK.finditer(line):
            if match["code"] is None and is_relative(match[4]):
                yield number, match[4]


def anchors(text):
    """Names of the headings."""
    names = set()
    for _, line in prose(text):
        if heading := HEADING.match(line):
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            count = 0
            while (unique := name if count == 0 else f"{name}-{count}") in names:
                count += 1
            names.add(unique)
    return names


def with_links(text, replace):
    """The text with each link replaced by what `replace(is_image, label, target)` returns."""

    def one(match):
        if match["code"] is not None or not is_relative(match[4]):
            return match[0]
        return replace(bool(match[2]), match[3], match[4])

    lines = text.splitlines()
    for number, line in prose(text):
        lines[number - 1] = CODE_OR_LINK.sub(one, line)
    return "\n".join(lines) + "\n"

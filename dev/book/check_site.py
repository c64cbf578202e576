"""Checks the site that mdbook has built: each relative link and picture of a page leads to a file, and to an element
where it names one.
Usage: check_site.py DIRECTORY
"""

import os
import sys
import urllib.parse
from html.parser import HTMLParser


class Page(HTMLParser):
    """The links and the names of elements of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.names = [], set()
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" and value:
                self.names.add(value)
            elif name in ("href", "src") and value and not urllib.parse.urlparse(value).scheme:
                self.links.append(value)


def main():
    site = os.path.normpath(sys.argv[1])
    files = [os.path.join(folder, name) for folder, _, names in os.walk(site) for name in names]
    paths = [path for path in files if path.endswith(".html")]
    pages = {path: Page(path) for path in paths}
    complaints = []
    for path, page in pages.items():
        # The page for addresses that are not there has links from the root, wherever it is shown.
        if os.path.basename(path) == "404.html":
            continue
        for link in page.links:
            file, _, anchor = urllib.parse.unquote(link).partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            if os.path.isdir(there):
                there = os.path.join(there, "index.html")
            if not os.path.exists(there):
                complaints.append(f"{path}: {link} leads nowhere")
            elif anchor and there in pages and anchor not in pages[there].names:
                complaints.append(f"{path}: {link}: there is no such heading")
    for complaint in complaints:
        print(complaint)
    print(f"{len(pages)} pages of the site, {len(complaints)} broken links")
    sys.exit(1 if complaints or not pages else 0)


main()

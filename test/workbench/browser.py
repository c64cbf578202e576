"""A browser, and what is done in its pages."""
import os

SITE = os.path.join(os.path.dirname(__file__), "..", "..", "server/workbench/dist/site")
# Milliseconds after which what does not come to be seen is missed.
WAIT = 60_000
# The names of the data of `make demo`.
SOLAR = "http://example.org/solar/"


class Browser:
    """Pages whose errors are noted."""

    def __init__(self, browser, endpoint):
        self.browser, self.endpoint, self.errors = browser, endpoint, []

    def page(self, address="/", **options):
        page = self.browser.new_context(**{"viewport": {"width": 1200, "height": 850}, **options}).new_page()
        page.set_default_timeout(WAIT)
        page.on("pageerror", lambda error: self.errors.append(f"{page.url}: {error}"))
        # Statuses other than 200 are noted by the browser as errors, and are what some tests are about.
        page.on("console", lambda message: self.errors.append(f"{page.url}: {message.text}")
                if message.type in ("error", "warning") and "Failed to load resource" not in message.text else None)
        page.goto(self.endpoint.url + address)
        return page

    def signed_in(self, address="/"):
        page = self.page(address)
        sign_in(page)
        return page


def sign_in(page):
    page.click("#sign")
    page.get_by_label("Name").fill("postgres")
    page.get_by_role("dialog").get_by_role("button", name="Sign in").click()
    page.wait_for_selector("#sign:has-text('sign out')")


def write(page, text):
    """Writes a query, replacing what is there."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    # Text that takes the place of coloured text gets its style from the browser, which the policy stops, and the
    # browser says so.
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)


def answered(page, text=""):
    page.wait_for_selector(f"#status:has-text('{text or ' ms'}')")


def shot(page, name):
    if os.environ.get("PGQUAD_SHOTS"):
        page.screenshot(path=os.path.join(os.environ["PGQUAD_SHOTS"], name + ".png"), full_page=True, caret="initial")

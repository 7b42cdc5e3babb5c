"""Horizon's pages as their users have them: where to click, and what must not be seen or answered meanwhile."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.sync_api import Locator, Response, expect

from tests.machine.browser import PICTURES, Console

PATIENCE_MS, GLANCE_MS = 60_000, 50
#: A browser has each red box told, whenever it comes, and though it goes again.
WATCH = f"""setInterval(() => {{
    for (const box of document.querySelectorAll(".alert-danger, .alert-error"))
        if (box.getClientRects().length && box.innerText.trim() && !box.told) {{
            box.told = true;
            redBox(location.pathname + ": " + box.innerText.trim());
        }}
}}, {GLANCE_MS})"""
#: A type that Glance does not have: Horizon fails in any cloud when nothing is of the type it asks for.
ITS_OWN = re.compile(r"/metadefs/namespaces/.*=OS::Cinder::Volumes$")
#: Of a row in the wizard's tables.
TAKE, GIVE_BACK = ".fa-arrow-up", ".fa-arrow-down"


class Dashboard:
    """One user's tab. ``troubles``: red boxes, answers that say an error, scripts that died."""

    def __init__(self, console: Console, url: str) -> None:
        self.console, self.page, self.url = console, console.page, url.rstrip("/")
        self.troubles: list[str] = []
        self.page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        self.page.expose_function("redBox", lambda words: self.troubles.append(words))
        self.page.add_init_script(WATCH)
        self.page.on("response", self._look)
        self.page.on("pageerror", lambda error: self.troubles.append(f"{self.page.url}: script died: {error}"))

    def _look(self, answer: Response) -> None:
        failed = answer.status >= 500 or answer.status >= 400 and "/api/nova/" in answer.url
        if failed and not ITS_OWN.search(answer.url):
            self.troubles.append(f"{answer.request.method} {answer.url}: {answer.status}")

    def fine(self) -> None:
        """AssertionError: something was red."""
        self.page.wait_for_timeout(3 * GLANCE_MS)
        if self.troubles:
            self.console.picture()
        assert not self.troubles, f"{self.troubles}\nIts scripts: {self.console.log[-10:]}\nPictures: {PICTURES}"

    def visit(self, path: str) -> str:
        """The page's words, when its scripts have all that they asked for."""
        answer = self.page.goto(self.url + path, wait_until="networkidle")
        assert answer and answer.status == 200, f"{path}: {answer and answer.status}"
        assert urlsplit(self.page.url).path.rstrip("/") == urlsplit(path).path.rstrip("/"), self.page.url
        self.fine()
        return self.console.text

    def log_in(self, user: str, password: str) -> None:
        self.page.goto(self.url)
        self.page.fill("#id_username", user)
        self.page.fill("#id_password", password)
        self.page.click("#loginBtn")
        expect(self.page.locator("#navbar-collapse")).to_contain_text(user)
        self.fine()

    # --- the wizard

    def launch(self, name: str, **chosen: str) -> None:
        """``chosen``: for a step of the wizard (``Source``), the name of what is taken there."""
        self.visit("/project/instances/")
        self.page.click("#instances__action_launch-ng")
        wizard = self.page.locator("wizard")
        wizard.locator("#name").fill(name)
        for step, what in chosen.items():
            self._take(wizard, step, what)
        self.console.picture()
        wizard.locator("button.finish").click()
        expect(wizard).to_have_count(0)

    def _take(self, wizard: Locator, step: str, what: str) -> None:
        """What is the only one of its kind may be taken already."""
        wizard.locator(".wizard-nav li", has_text=step).first.click()
        row = wizard.locator(".step:not(.ng-hide) tr", has=self.page.get_by_text(what, exact=True)).first
        row.locator(TAKE).or_(row.locator(GIVE_BACK)).wait_for()
        if row.locator(TAKE).count():
            row.locator(TAKE).click()
        row.locator(GIVE_BACK).wait_for()

    # --- the table of instances

    def row(self, name: str) -> Locator:
        return self.page.locator(f"tr[data-display='{name}']")

    def settled(self, name: str, status: str) -> None:
        """The table says so of itself, as it asks every few seconds."""
        expect(self.row(name).locator("td", has_text=re.compile(rf"^\s*{status}\s*$")).first).to_be_visible()

    def act(self, name: str, action: str) -> None:
        """By the row's menu."""
        row = self.row(name)
        row.locator(".dropdown-toggle").click()
        row.locator(".dropdown-menu").get_by_text(action, exact=True).click()

    def press(self, name: str, action: str) -> None:
        """What the row offers first."""
        self.row(name).locator(".btn-group, .actions_column").get_by_text(action, exact=True).first.click()

    def submit(self, **fields: str) -> None:
        """The form that has come up, or the question: fill it in, and send it."""
        modal = self.page.locator(".modal-dialog:visible")
        for name, value in fields.items():
            field = modal.locator(f"[name={name}]")
            if field.evaluate("one => one.tagName") == "SELECT":
                field.select_option(label=value, force=True)
            else:
                field.fill(value)
        self.console.picture()
        modal.locator(".modal-footer .btn-primary, .modal-footer .btn-danger").click()
        expect(modal).to_have_count(0)
        self.page.wait_for_load_state("networkidle")
        self.fine()

    # --- the page of one instance

    def tab(self, name: str) -> Locator:
        """What it shows."""
        head = self.page.locator(f"a[data-target='#instance_details__{name}']")
        head.click()
        panel = self.page.locator(f"#instance_details__{name}")
        expect(panel).to_contain_text(re.compile(r"\S"))
        expect(panel).not_to_contain_text("Loading")
        self.fine()
        return panel

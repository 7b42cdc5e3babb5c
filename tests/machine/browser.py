"""Chromium without a window, in the network of a sandbox's controller: what users' browsers see of consoles.

Pictures of the pages are kept, see ``PICTURES``.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from playwright.sync_api import Error, Page, sync_playwright

from tests.functional.backends import wait_until

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync")
#: Where pictures are kept: of this run, the last one's are gone.
PICTURES = Path(os.environ.get("NOVA_TEST_OUTPUT") or Path(tempfile.gettempdir()) / "nova-test-output") / "consoles"
VIEW = (1000, 640)
KEY_S = 0.03  # an emulated guest takes its keys one by one
SHIFTED = {"$": "Digit4", "(": "Digit9", ")": "Digit0", "*": "Digit8", ">": "Period", '"': "Quote", "_": "Minus"}
PLAIN = {" ": "Space", "\n": "Enter", "-": "Minus", ".": "Period", "/": "Slash", ";": "Semicolon", "=": "Equal"}

# What a picture has of a colour, counted where PNG is understood. (data URL, lowest and highest red, green, blue)
COUNT = """async ([url, low, high]) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.width; canvas.height = image.height;
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const data = context.getImageData(0, 0, image.width, image.height).data;
    let count = 0;
    for (let at = 0; at < data.length; at += 4)
        if ([0, 1, 2].every(part => low[part] <= data[at + part] && data[at + part] <= high[part])) count += 1;
    return count;
}"""
TEXT = """() => {
    const banner = document.getElementById("nova-session");
    const own = banner && banner.shadowRoot ? banner.shadowRoot.querySelector(".bar").innerText + "\\n" : "";
    return own + (document.body ? document.body.innerText : "");
}"""
#: The guest's bar, less what QEMU's palettes make of VGA's blue (0, 0, 170).
BAR = ((0, 0, 160), (10, 10, 180))
#: Pixels of it: 720 by 48, less its letters.
BAR_PIXELS = 30_000


class Console:
    """One tab. ``name``: of its pictures."""

    def __init__(self, page: Page, blank: Page, name: str) -> None:
        self.page, self._blank, self.name = page, blank, name
        self.log: list[str] = []  # what its scripts told the browser's console
        self._count = 0
        page.on("console", lambda message: self.log.append(message.text))
        page.on("pageerror", lambda error: self.log.append(f"error: {error}"))

    def open(self, url: str) -> int:
        """The status of the page itself."""
        answer = self.page.goto(url, wait_until="load", timeout=30_000)
        return answer.status if answer else 0

    def close(self) -> None:
        self.page.close()

    # --- what is seen

    def picture(self) -> bytes:
        """The page as PNG, which is kept."""
        self._count += 1
        return self.page.screenshot(path=PICTURES / f"{self.name}-{self._count:02}.png")

    def pixels(self, low: tuple[int, ...], high: tuple[int, ...], picture: bytes | None = None) -> int:
        url = "data:image/png;base64," + base64.b64encode(picture or self.page.screenshot()).decode()
        return int(self._blank.evaluate(COUNT, [url, low, high]))

    def shows_guest(self, seconds: float = 30) -> None:
        """The guest's own bar is in the picture."""
        self._await("the guest's bar", lambda: self.pixels(*BAR) > BAR_PIXELS, seconds)
        self.picture()

    @property
    def text(self) -> str:
        """The words of the page that can be seen, and of the proxy's banner on it."""
        return str(self.page.evaluate(TEXT))

    def says(self, pattern: str, seconds: float = 15) -> str:
        """Wait for words; the page's text then."""
        self._await(f"words like {pattern!r}", lambda: re.search(pattern, self.text, re.IGNORECASE), seconds)
        self.picture()
        return self.text

    def _await(self, what: str, condition: Callable[[], Any], seconds: float) -> None:
        try:
            wait_until(what, condition, seconds, 0.3)
        except AssertionError as error:
            self.picture()
            raise AssertionError(f"{self.name}: {error}\nThe page says: {self.text[:1500]}\n"
                                 f"Its scripts: {self.log[-20:]}\nPictures: {PICTURES}") from None

    # --- what is typed

    def type(self, text: str) -> None:
        """Key by key, as on an American keyboard: guests get keys and not characters."""
        keyboard = self.page.keyboard
        for character in text:
            if shifted := SHIFTED.get(character):
                keyboard.down("Shift")
                keyboard.press(shifted)
                keyboard.up("Shift")
            else:
                letter = f"Key{character.upper()}" if character.isalpha() else f"Digit{character}"
                keyboard.press(PLAIN.get(character) or letter)
            time.sleep(KEY_S)


class Browser:
    """Use as a context manager. ``init``: the pid of a room's first process, whose network it stands in."""

    def __init__(self, init: int) -> None:
        self._init = init

    def __enter__(self) -> Browser:
        shutil.rmtree(PICTURES, ignore_errors=True)
        PICTURES.mkdir(parents=True)
        self._folder = tempfile.TemporaryDirectory(prefix="browser-")
        program = Path(self._folder.name) / "chromium"
        program.write_text(f'#!/bin/sh\nexec nsenter -t {self._init} -n {CHROMIUM} "$@"\n')
        program.chmod(0o755)
        self._playwright = sync_playwright().start()
        self._chromium = self._playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        self._blank = self._chromium.new_page()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
                 ) -> None:
        with contextlib.suppress(Error):  # it may have died
            self._chromium.close()
        self._playwright.stop()
        self._folder.cleanup()
        print(f"pictures of consoles: {PICTURES}")

    @contextlib.contextmanager
    def tab(self, name: str, view: tuple[int, int] = VIEW) -> Iterator[Console]:
        """A tab without anybody's cookies; closed at the end."""
        width, height = view
        context = self._chromium.new_context(viewport={"width": width, "height": height}, ignore_https_errors=True)
        try:
            yield Console(context.new_page(), self._blank, name)
        finally:
            context.close()

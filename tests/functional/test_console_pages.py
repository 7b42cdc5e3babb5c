"""The proxies' pages in a real browser, before small guests: what a user sees when it works, and when it does not."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from nova import errors, http_server
from nova.console import app, gate, kinds, paper, sessions, static, target, terminal
from tests.fakes.console_front import GOOD, FakeConsoleAuth, FakeEnd, echo, rfb
from tests.functional.backends import wait_until

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
             "--disable-sync"]
PATIENCE_MS = 15_000
HERE = target.Reach(local_hosts=frozenset(["here"]))

pytestmark = [pytest.mark.in_turn(2, 5),
              pytest.mark.skipif(CHROMIUM is None, reason="needs the Debian package chromium")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1000, "height": 640})
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


class Proxy:
    """A proxy with a guest behind it."""

    def __init__(self, kind: kinds.ConsoleKind, talk: Any) -> None:
        self.end = FakeEnd(talk)
        self.auth = FakeConsoleAuth(kind.types[0])
        self.auth.give(port=self.end.port)
        self.sessions = sessions.Sessions(sessions.SessionLimits(9, 9, 9, 9), kind.exclusive, lambda _state: None)
        door = gate.ConsoleGate(kind, self.auth, self.sessions, gate.GateSettings(reach=HERE))
        try:
            assets = paper.assets(kind, "/usr/share/javascript/xterm")
        except terminal.NoTerminal as missing:
            pytest.skip(str(missing))
        files = static.StaticFiles(kind.web) if kind.web else None
        sock = http_server.bind("127.0.0.1", 0)
        self.server = http_server.Server(sock, app.App(door, files, assets),
                                         http_server.ClientBounds(50, 30, 10))
        self.server.start()
        self.base = f"http://127.0.0.1:{self.server.sock.getsockname()[1]}"

    def drain(self) -> None:
        threading.Thread(target=self.sessions.drain, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self.server.stop(1)
        self.server.sock.close()
        self.end.close()


def proxy_of(kind: kinds.ConsoleKind, talk: Any) -> Iterator[Proxy]:
    if kind.web and not os.path.isdir(kind.web):
        pytest.skip(f"needs the Debian package of {kind.web}")
    made = Proxy(kind, talk)
    yield made
    made.stop()


@pytest.fixture
def novnc() -> Iterator[Proxy]:
    yield from proxy_of(kinds.NOVNC, rfb)


@pytest.fixture
def spice() -> Iterator[Proxy]:
    yield from proxy_of(kinds.SPICE, silent)


@pytest.fixture
def serial() -> Iterator[Proxy]:
    yield from proxy_of(kinds.SERIAL, echo)


def silent(sock: socket.socket) -> None:
    """Takes what comes and says nothing."""
    while sock.recv(65536):
        pass


def novnc_address(proxy: Proxy, token: str = GOOD, page: str = "vnc_auto.html") -> str:
    return f"{proxy.base}/{page}?path=%3Ftoken%3D{token}"


def banner(page: Page) -> str:
    """The words of the banner that our script shows in others' pages."""
    return page.locator("#nova-session span").inner_text()


def dashboard_of(address: str) -> Any:
    """The page of a dashboard that shows a console in a frame."""
    def answer(_environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/html")])
        return [f'<!doctype html><iframe width=900 height=600 src="{address}"></iframe>'.encode()]
    return answer


def corner(page: Page) -> list[int]:
    """The upper left pixel of noVNC's canvas, as red, green, blue."""
    found: list[int] = page.wait_for_function("""() => {
        const canvas = document.querySelector("canvas");
        if (!canvas || canvas.width < 600) { return false; }
        const pixel = canvas.getContext("2d").getImageData(0, 0, 1, 1).data;
        return pixel[3] && pixel[0] ? Array.from(pixel).slice(0, 3) : false; }""").json_value()
    return found


def test_novnc_page_when_the_token_is_good_then_the_screen_is_there_without_a_click(novnc: Proxy, page: Page) -> None:
    page.goto(novnc_address(novnc))
    assert corner(page) == [96, 0, 0]


def test_novnc_page_when_a_dashboard_embeds_it_then_it_works(novnc: Proxy, page: Page) -> None:
    dashboard = http_server.Server(http_server.bind("127.0.0.1", 0), dashboard_of(novnc_address(novnc)))
    dashboard.start()
    page.goto(f"http://localhost:{dashboard.sock.getsockname()[1]}/")  # another origin, and another site
    frame = page.frame_locator("iframe")
    frame.locator("canvas").wait_for()
    assert not frame.locator("#nova-session").count()
    dashboard.stop(1)


def test_novnc_page_when_the_proxy_stops_then_a_banner_says_so_and_reconnects(novnc: Proxy, page: Page) -> None:
    page.goto(novnc_address(novnc))
    corner(page)
    novnc.drain()
    assert banner(page) == sessions.DRAINING
    novnc.sessions.draining = False
    page.locator("#nova-session button").click()
    corner(page)


def test_novnc_page_when_it_is_refused_later_then_the_banner_has_the_words(novnc: Proxy, page: Page) -> None:
    page.goto(novnc_address(novnc, page="vnc_lite.html"))
    corner(page)
    novnc.auth.error = errors.NotFound("This console's address has expired.")
    page.evaluate("new WebSocket(location.origin.replace('http', 'ws') + '/?token=x')")
    assert banner(page) == "This console's address has expired."


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bad_token_shows_a_page_in_words(novnc: Proxy, browser: Browser, scheme: Any) -> None:
    context = browser.new_context(color_scheme=scheme)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    answer = page.goto(novnc_address(novnc, "bad"))
    assert answer is not None and answer.status == 404
    assert page.inner_text("#words") == "This console's address has expired, or its server is gone."
    light = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(242, 244, 247)"
    assert light == (scheme == "light") and not wrong
    context.close()


def test_spice_page_hands_its_token_on_and_leaves_no_cookie(spice: Proxy, page: Page) -> None:
    with page.expect_websocket(timeout=PATIENCE_MS) as opened:
        page.goto(f"{spice.base}/spice_auto.html?token={GOOD}")
    assert opened.value.url.endswith(f"?token={GOOD}")
    page.wait_for_function("document.readyState === 'complete'")
    assert page.context.cookies() == [] and page.evaluate("document.cookie") == ""
    wait_until("its WebSocket gets as far as the token's check", lambda: spice.auth.checks[-1].redeem, 10)


def test_serial_page_carries_what_is_typed_and_shown(serial: Proxy, page: Page) -> None:
    page.goto(f"{serial.base}/?token={GOOD}&title=vm1")
    page.get_by_text("Connected").wait_for()
    page.get_by_text("Grüße ☃").wait_for()
    assert page.title().startswith("vm1")
    page.keyboard.type("uname -a")
    page.get_by_text("login: uname -a").wait_for()
    columns = "document.querySelector('.xterm-rows, .xterm-screen').getBoundingClientRect().width"
    wide = page.evaluate(columns)
    page.set_viewport_size({"width": 500, "height": 300})
    page.wait_for_function(f"{columns} < 500")
    assert wide > 900, "the terminal fills the window"


def test_serial_page_when_opened_elsewhere_or_expired_then_it_says_so(serial: Proxy, page: Page) -> None:
    page.goto(f"{serial.base}/?token={GOOD}")
    page.get_by_text("Connected").wait_for()
    newer = page.context.new_page()
    newer.goto(f"{serial.base}/?token={GOOD}")
    newer.get_by_text("Connected").wait_for()
    page.get_by_text(sessions.OPENED_ELSEWHERE).wait_for()
    serial.auth.grants.clear()
    page.click("#again")
    page.get_by_text("This console's address has expired").wait_for()
    serial.stop()
    page.click("#again")
    page.get_by_text("The console proxy does not answer").wait_for()

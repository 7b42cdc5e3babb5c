"""The proxies' pages in a real browser, before small guests: what a user sees when it works, and when it does not."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import errors, http_server
from nova.console import access, app, installed, kinds, sessions, target
from nova.console.installed import ProxyPages
from tests.fakes.console_front import GOOD, FakeConsoleAuth, FakeEnd, echo, rfb
from tests.functional.backends import wait_until

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
             "--disable-sync"]
PATIENCE_MS = 15_000
#: What a guest sends -> the lines that the plain terminal then shows.
SENT = {
    "one\r\ntwo": ["one", "two"], "word\rW": ["Word"], "ab\b\bc": ["cb"], "a\tb": ["a       b"], "\x07bell": ["bell"],
    "\x1b[31mred\x1b[0m \x1b[1;44mblue\x1b[m": ["red blue"], "\x1b]0;title\x07text": ["text"],
    "\x1b[?25l\x1b[?2004hshown": ["shown"], "\x1b(Bascii": ["ascii"], "lost\x1b[2J\x1b[Hkept": ["kept"],
    "first\x1b[3;2Hthird": ["first", "", " third"], "cut here\x1b[4D\x1b[K": ["cut"], "abc\x1b[2D\x1b[P": ["ac"],
    "ac\x1b[D\x1b[@b": ["abc"], "1\r\n3\r\x1b[L2": ["1", "2", "3"], "1\r\n2\r\n3\x1b[2;1H\x1b[M": ["1", "3"],
    "top\x1b7\x1b[5;5H\x1b8!": ["top!"], "\u2603 Gr\u00fc\u00dfe \U0001f600": ["\u2603 Gr\u00fc\u00dfe \U0001f600"],
    "x" * 81: ["x" * 80, "x"], "\x1b[2;3r\x1b[3;1Ha\nb\rc": ["", "a", "cb"],
}
#: The text in two pieces at each place where it can be cut, and what is kept of many lines.
SHOW = """([text, cut]) => {
    const terminal = new Terminal({fontSize: 14, fontFamily: "monospace", scrollback: 5,
                                   theme: {background: "#000", foreground: "#fff"}});
    terminal.open(document.body);
    terminal.write(text.slice(0, cut)); terminal.write(text.slice(cut));
    const buffer = terminal.buffer.active, lines = [];
    for (let row = 0; row < buffer.length; row++) { lines.push(buffer.getLine(row).translateToString(true)); }
    terminal.root.remove();
    while (lines.length && !lines[lines.length - 1]) { lines.pop(); }
    return lines; }"""
HERE = target.Reach(local_hosts=frozenset(["here"]))

pytestmark = [pytest.mark.in_turn(7, 10),
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

    def __init__(self, kind: kinds.ConsoleKind, talk: Any, pages: ProxyPages) -> None:
        self.end = FakeEnd(talk)
        self.auth = FakeConsoleAuth(kind.types[0])
        self.auth.give(port=self.end.port)
        self.sessions = sessions.Sessions(sessions.SessionLimits(9, 9, 9, 9), kind.exclusive, lambda _state: None)
        door = access.ConsoleAccess(kind, self.auth, self.sessions, access.AccessSettings(reach=HERE))
        sock = http_server.bind("127.0.0.1", 0)
        self.server = http_server.Server(sock, app.App(door, pages),
                                         http_server.ClientBounds(50, 30, 10))
        self.server.start()
        self.base = f"http://127.0.0.1:{self.server.sock.getsockname()[1]}"

    def drain(self) -> None:
        threading.Thread(target=self.sessions.drain, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self.server.stop(1)
        self.server.sock.close()
        self.end.close()


def whole(kind: kinds.ConsoleKind) -> ProxyPages:
    """With all that Debian's packages have."""
    pages = installed.pages(kind, None, "/usr/share/javascript/xterm")
    return pages if not pages.lacks else pytest.skip(pages.lacks)


def proxy_of(kind: kinds.ConsoleKind, talk: Any, pages: ProxyPages) -> Iterator[Proxy]:
    made = Proxy(kind, talk, pages)
    yield made
    made.stop()


@pytest.fixture(params=["whole", "library"])
def novnc(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxy]:
    """noVNC as Debian has it, and its library alone, as npm has it."""
    pages = whole(kinds.NOVNC)
    if request.param == "library":
        for part in ("core", "vendor"):
            (tmp_path / part).symlink_to(Path(kinds.NOVNC.web, part))
        pages = installed.pages(kinds.NOVNC, str(tmp_path), "")
    yield from proxy_of(kinds.NOVNC, rfb, pages)


@pytest.fixture
def spice() -> Iterator[Proxy]:
    yield from proxy_of(kinds.SPICE, silent, whole(kinds.SPICE))


@pytest.fixture(params=["xterm", "plain"])
def serial(request: pytest.FixtureRequest) -> Iterator[Proxy]:
    """With xterm.js, and with the terminal of our own."""
    plain = installed.pages(kinds.SERIAL, None, "/nowhere", "/nowhere")
    yield from proxy_of(kinds.SERIAL, echo, plain if request.param == "plain" else whole(kinds.SERIAL))


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


def test_plain_terminal_when_a_guest_sends_sequences_then_the_lines_are_as_a_terminals(page: Page) -> None:
    script = installed.pages(kinds.SERIAL, None, "/nowhere", "/nowhere").own["terminal.js"].content.decode()
    page.add_script_tag(content=script)
    for cut in (lambda text: 0, lambda text: 1, lambda text: len(text) // 2):
        assert {text: page.evaluate(SHOW, [text, cut(text)]) for text in SENT} == SENT
    assert page.evaluate(SHOW, ["\r\n".join(map(str, range(40))), 0])[0] == "11", "five lines above the screen's 24"


def test_plain_terminal_when_keys_are_pressed_then_the_guest_gets_a_terminals_codes(page: Page) -> None:
    script = installed.pages(kinds.SERIAL, None, "/nowhere", "/nowhere").own["terminal.js"].content.decode()
    page.add_script_tag(content=script)
    page.evaluate("""() => { window.sent = "";
        const terminal = new Terminal({fontSize: 14, scrollback: 5, theme: {}});
        terminal.onData(text => { window.sent += text; }); terminal.open(document.body); terminal.focus(); }""")
    for key in ("a", "Enter", "ArrowUp", "Control+c", "Alt+b", "Backspace", "Tab", "Escape"):
        page.keyboard.press(key)
    page.keyboard.insert_text("Gr\u00fc\u00dfe")
    assert page.evaluate("window.sent") == "a\r\x1b[A\x03\x1bb\x7f\t\x1bGr\u00fc\u00dfe"


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
    page.get_by_text("The console proxy does not respond").wait_for()

"""Consoles as their users have them: a browser at the address that the API gave, and a guest that runs behind it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import time
import uuid as uuids
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

pytestmark = pytest.mark.in_turn(0, 10)

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Error  # noqa: E402

from nova.db.models import cell  # noqa: E402
from tests.functional.backends import wait_until  # noqa: E402
from tests.functional.client import Refused  # noqa: E402
from tests.machine.browser import Browser, Console  # noqa: E402
from tests.machine.server import Server  # noqa: E402
from tests.machine.stack import Sandbox, novaconf  # noqa: E402

TYPES = {"novnc": "vnc", "spice-html5": "spice", "serial": "serial", "xvpvnc": "vnc"}
PAGES = ("novnc", "spice-html5", "serial")
HEARD_S = 30
#: The lengths, in bytes, that the page's own tickets have.
TICKETS = """async () => {
    const [{rsa_encrypt}, {RSAKey}, {BigInteger}] = await Promise.all(
        ["ticket", "thirdparty/rsa", "thirdparty/jsbn"].map(name => import(`/${name}.js`)));
    const key = new RSAKey();
    key.n = new BigInteger("c" + "5".repeat(255), 16);
    key.e = 65537;
    return [...new Set(Array.from({length: 1500}, () => rsa_encrypt(key, "\\0").length))];
}"""
TOKEN = re.compile("token(?:=|%3D)([0-9a-f-]{36})")


@pytest.fixture(scope="module")
def browser(sandbox: Sandbox) -> Iterator[Browser]:
    with Browser(sandbox.controller_init) as made:
        yield made


@pytest.fixture(scope="module")
def guest(sandbox: Sandbox) -> Iterator[Server]:
    """Of the cloud's ordinary user; it runs when a test begins and may be anything when it ends."""
    api = sandbox.api("demo")
    uuid = api.create("screen", key_name="demo")["id"]
    api.settled(uuid, "ACTIVE")
    yield Server(sandbox, uuid, sandbox.ready(api, uuid)["address"], api)
    sandbox.remove(api, uuid)


@pytest.fixture
def runs(guest: Server) -> Server:
    if guest.api.show(guest.uuid)["status"] != "ACTIVE":
        guest.act("os-start")
        guest.settled("ACTIVE")
        guest.awake()
    return guest


def address(guest: Server, kind: str = "novnc") -> str:
    """A new one, as a browser opens it: of the serial console's the page, and not the WebSocket."""
    body = {"remote_console": {"protocol": TYPES[kind], "type": kind}}
    made = guest.api.call("POST", f"/servers/{guest.uuid}/remote-consoles", body).json()["remote_console"]
    assert (made["protocol"], made["type"]) == (TYPES[kind], kind)
    return re.sub("^ws", "http", made["url"])


def hears(guest: Server, pattern: str, seconds: float = HEARD_S) -> None:
    """The console log, which is the serial line's, says so."""
    wait_until(f"{pattern} in the console log", lambda: re.search(pattern, guest.api.console(guest.uuid), re.MULTILINE),
               seconds, 0.5)


def answers(console: Console, guest: Server, word: str) -> None:
    """What is typed at a shell's prompt is done. A page's keys may have a channel of their own (SPICE's have), which is
    there a moment after its picture: who typed too early types again."""
    for patience in (8, HEARD_S):
        console.type(f"echo {word}-$((6*7))\n")
        with contextlib.suppress(AssertionError):
            return hears(guest, rf"{word}-42", patience)
    raise AssertionError(f"{word} was typed, and this is all that came of it: {guest.api.console(guest.uuid)[-500:]}")


def log_in(console: Console, guest: Server) -> None:
    """On the serial line, once it is connected: a key that is pressed before that is lost."""
    console.says("Connected")
    console.page.mouse.click(400, 300)
    console.type("\n")
    time.sleep(1)
    console.type("root\n")
    hears(guest, "login: root")
    time.sleep(1)


# --- what a user sees and types


def test_up_when_it_ends_then_it_has_said_where_the_demo_servers_screen_is(sandbox: Sandbox, browser: Browser) -> None:
    said = re.search(r"^  console  (http\S+)\n +valid for 10 minutes; a new one: (.*)$", sandbox.up(), re.MULTILINE)
    assert said and "openstack console url show demo" in said[2]
    with browser.tab("demo", (820, 480)) as console:
        assert console.open(said[1]) == 200
        console.shows_guest()
        console.type("echo hello-$((6*7))\n")
        time.sleep(6)  # noVNC's own words about the connection go away
        console.picture()  # the manual's
    shown = sandbox.openstack("console", "url", "show", "demo")
    assert shown["url"].startswith(sandbox.layout.url("novncproxy")) and shown["url"] != said[1]


def test_novnc_page_when_opened_then_it_shows_the_guests_screen_and_keys_arrive(browser: Browser, runs: Server) -> None:
    with browser.tab("novnc") as console:
        assert console.open(address(runs)) == 200
        console.shows_guest()
        answers(console, runs, "hello")
        assert "tty1: hello-42" in runs.api.console(runs.uuid), "it was the screen's shell"
        console.picture()


def test_spice_page_when_opened_then_it_shows_the_guests_screen_and_keys_arrive(browser: Browser, runs: Server) -> None:
    with browser.tab("spice") as console:
        assert console.open(address(runs, "spice-html5")) == 200
        console.shows_guest()
        console.page.mouse.click(400, 300)
        answers(console, runs, "spiced")
        console.picture()


def test_spice_page_when_it_makes_its_tickets_then_each_is_as_long_as_the_key(browser: Browser, runs: Server) -> None:
    """spice-html5 by itself drops leading zeros, and the channel of one ticket in 256 is refused."""
    with browser.tab("tickets") as console:
        console.open(address(runs, "spice-html5"))
        console.shows_guest()
        assert console.page.evaluate(TICKETS) == [128]


def test_serial_page_when_opened_then_it_is_the_serial_lines_terminal(browser: Browser, runs: Server) -> None:
    with browser.tab("serial") as console:
        assert console.open(address(runs, "serial")) == 200
        console.page.wait_for_selector(".xterm")
        log_in(console, runs)
        answers(console, runs, "line")
        text = runs.api.console(runs.uuid)
        assert re.search("^line-42$", text, re.MULTILINE) and "tty1: line" not in text, "it was the serial line's shell"
        console.picture()
        console.type("exit\n")


def test_viewer_when_it_shows_an_xvp_token_then_it_speaks_vnc_with_the_guest(sandbox: Sandbox, runs: Server) -> None:
    where = urlsplit(address(runs, "xvpvnc"))
    with sandbox.dial((str(where.hostname), where.port or 0), 10) as viewer, viewer.makefile("rb") as heard:
        viewer.sendall(f"GET {where.path}?{where.query} HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
        assert heard.readline() == b"HTTP/1.1 200 OK\r\n" and heard.readline() == b"\r\n"
        assert heard.readline() == b"RFB 003.008\n"


def test_clients_when_asked_for_consoles_then_each_prints_an_address(sandbox: Sandbox, runs: Server) -> None:
    for words, port in ((("--novnc",), 6080), (("--spice",), 6082), (("--serial",), 6083)):
        shown = sandbox.openstack("console", "url", "show", *words, runs.uuid)
        assert urlsplit(shown["url"]).port == port and TOKEN.search(shown["url"])
    for words in (("get-vnc-console", runs.uuid, "novnc"), ("get-spice-console", runs.uuid, "spice-html5"),
                  ("get-serial-console", runs.uuid)):
        assert TOKEN.search(sandbox.nova(*words))
    assert "Unavailable console type rdp-html5" in sandbox.run(
        "sh", "-c", f"openstack console url show --rdp {runs.uuid} 2>&1", code=1)


def test_logs_when_a_console_was_opened_then_its_token_is_in_none_of_them(
        sandbox: Sandbox, browser: Browser, runs: Server) -> None:
    for kind in PAGES:
        url = address(runs, kind)
        token = TOKEN.search(url)
        with browser.tab(f"{kind}-logged") as console:
            assert token and console.open(url) == 200
            console.page.wait_for_selector(".xterm" if kind == "serial" else "canvas")
        hashed = hashlib.sha256(token[1].encode()).hexdigest()
        logs = {log.name: log.read_text(errors="replace") for log in sandbox.layout.logs.glob("*.log")}
        wait_until("nova-consoleauth tells of it", lambda short=hashed[:8]: short in
                   sandbox.layout.log("nova-consoleauth").read_text(), 5)
        assert not [name for name, text in logs.items() if token[1] in text or hashed in text]


# --- addresses that are no good


def with_token(url: str, token: str) -> str:
    """The same address with another token."""
    return re.sub(r"(token(?:=|%3D))[0-9a-f-]+", lambda found: found[1] + token, url)


def expire(sandbox: Sandbox, guest: Server) -> None:
    """All addresses of a server become as old as they would by themselves."""
    tokens = cell.console_tokens
    late = sa.update(tokens).where(tokens.c.server_uuid == guest.uuid).values(expires_at=tokens.c.expires_at - 700)
    sandbox.stores.cell.transact(lambda tx: tx.execute(late))


@pytest.mark.parametrize("kind", PAGES)
def test_page_when_the_token_is_no_good_then_it_says_so_in_words(
        sandbox: Sandbox, browser: Browser, runs: Server, kind: str) -> None:
    good = address(runs, kind)
    with browser.tab(f"{kind}-refused") as console:
        for token, words in (("0" * 400, "malformed"), (str(uuids.uuid4()), "Unknown console address")):
            assert console.open(with_token(good, token)) == 404
            console.says(words)
        foreign = address(runs, "serial" if kind != "serial" else "novnc")
        token = TOKEN.search(foreign)
        assert token and console.open(with_token(good, token[1])) == 403
        console.says("another console type")
        expire(sandbox, runs)
        assert console.open(good) == 404
        console.says("expired")


@contextlib.contextmanager
def configured(sandbox: Sandbox, file: Path, text: str, *daemons: str) -> Iterator[None]:
    """More lines in a configuration file for a while, and daemons that have read them."""
    before = file.read_text()
    try:
        file.write_text(f"{before}\n{text}")
        for name in daemons:
            sandbox.tool("restart", name)
        yield
    finally:
        file.write_text(before)
        for name in daemons:
            sandbox.tool("restart", name)


def test_page_when_tokens_serve_once_then_the_second_use_says_so(
        sandbox: Sandbox, browser: Browser, runs: Server) -> None:
    once = "[consoleauth]\nsingle_use_tokens = true\n"
    with configured(sandbox, novaconf.control_file(sandbox.layout), once, "nova-consoleauth"):
        for kind in PAGES:
            good = address(runs, kind)
            with browser.tab(f"{kind}-once") as first, browser.tab(f"{kind}-twice") as second:
                assert first.open(good) == 200
                first.page.wait_for_selector(".xterm" if kind == "serial" else "canvas")
                time.sleep(3)
                if kind != "serial":
                    first.shows_guest()  # all of SPICE's channels belong to the one use
                assert second.open(good) == 403
                second.says("used already")


# --- TLS


@pytest.fixture(scope="module")
def papers(sandbox: Sandbox) -> Iterator[Path]:
    """A test authority, and what it gave hosts (server-*.pem) and the proxy (client-*.pem), as the manual says."""
    folder = sandbox.state / "papers"
    folder.mkdir()
    name = "-newkey rsa:3072 -nodes -subj"
    script = [f"openssl req -x509 {name} '/CN=Console CA' -days 30 -keyout ca-key.pem -out ca-cert.pem"]
    addresses = ", ".join(f"IP:{one.address}" for one in sandbox.layout.computes)
    for role in ("server", "client"):
        script += [
            f"printf 'basicConstraints = CA:false\\nkeyUsage = digitalSignature, keyEncipherment\\n' > {role}.ext",
            f"printf 'extendedKeyUsage = {role}Auth\\nsubjectAltName = {addresses}\\n' >> {role}.ext",
            f"openssl req -new {name} '/CN={role}' -keyout {role}-key.pem -out {role}.csr",
            f"openssl x509 -req -in {role}.csr -CA ca-cert.pem -CAkey ca-key.pem -CAcreateserial -days 30 "
            f"-extfile {role}.ext -out {role}-cert.pem"]
    subprocess.run(["sh", "-ec", "\n".join(script)], cwd=folder, check=True, capture_output=True)
    for file in folder.iterdir():  # the proxy's user is in the group; QEMU is root here
        shutil.chown(file, "root", "nova")
        file.chmod(0o640)
    yield folder
    shutil.rmtree(folder)


def test_page_when_the_proxy_has_a_certificate_then_it_is_https_and_wss(
        sandbox: Sandbox, browser: Browser, runs: Server, papers: Path) -> None:
    proxies = f"[DEFAULT]\ncert = {papers}/server-cert.pem\nkey = {papers}/server-key.pem\nssl_only = true\n"
    base = f"[vnc]\nnovncproxy_base_url = {sandbox.layout.url('novncproxy', '/vnc_auto.html', 'https')}\n"
    with configured(sandbox, novaconf.proxies_file(sandbox.layout), proxies, "nova-novncproxy"), \
            configured(sandbox, novaconf.proxies_file(sandbox.layout), base, "nova-consoleauth"), \
            browser.tab("tls") as console:
        url = address(runs)
        assert url.startswith("https://") and console.open(url) == 200
        console.shows_guest()
        answers(console, runs, "sealed")
        with pytest.raises(Error):
            console.open(url.replace("https://", "http://"))


def test_vencrypt_when_qemu_wants_a_certificate_then_the_proxys_is_taken_and_no_other(
        sandbox: Sandbox, browser: Browser, runs: Server, papers: Path) -> None:
    host, layout = runs.host, sandbox.layout
    qemu = layout.path("rooms", host, "etc-libvirt", "qemu.conf")
    tls = f'vnc_tls = 1\nvnc_tls_x509_cert_dir = "{papers}"\nvnc_tls_x509_verify = 1\n'
    proxy = (f"[vnc]\nauth_schemes = vencrypt\nvencrypt_ca_certs = {papers}/ca-cert.pem\n"
             f"vencrypt_client_cert = {papers}/client-cert.pem\nvencrypt_client_key = {papers}/client-key.pem\n")
    with configured(sandbox, qemu, tls, f"{host}-libvirtd"):
        runs.act("reboot", {"type": "HARD"})
        runs.settled("ACTIVE")
        runs.awake()
        with browser.tab("plain") as console:
            console.open(address(runs))
            console.says("offers no authentication scheme")
        with configured(sandbox, novaconf.proxies_file(layout), proxy, "nova-novncproxy"), \
                browser.tab("vencrypt") as console:
            assert console.open(address(runs)) == 200
            console.shows_guest()
            answers(console, runs, "veiled")
    runs.act("reboot", {"type": "HARD"})
    runs.settled("ACTIVE")
    runs.awake()


# --- what becomes of sessions


def test_address_when_the_server_moved_then_the_old_one_ends_and_a_new_one_works(
        browser: Browser, runs: Server) -> None:
    old, source = address(runs), runs.host
    with browser.tab("moved") as console, browser.tab("moved-new") as other:
        console.open(old)
        console.shows_guest()
        runs.admin.act(runs.uuid, "os-migrateLive", {"host": None, "block_migration": "auto"})
        wait_until("it is on the other host", lambda: runs.host != source, 90, 0.5)
        runs.settled("ACTIVE")
        console.says("console.*(closed|ended|gone|end)")
        assert console.open(old) == 404
        console.says("no longer valid")
        other.open(address(runs))
        other.shows_guest()
        answers(other, runs, "moved")
        other.open(address(runs, "spice-html5"))
        other.shows_guest()
        other.open(address(runs, "serial"))
        log_in(other, runs)
        answers(other, runs, "wired")
        other.type("exit\n")


def test_session_when_the_broker_restarts_then_it_goes_on_and_new_ones_come_back(
        sandbox: Sandbox, browser: Browser, runs: Server) -> None:
    with browser.tab("broker") as console, browser.tab("broker-new") as other:
        console.open(address(runs))
        console.shows_guest()
        waiting = address(runs)
        sandbox.tool("stop", "rabbitmq")
        try:
            answers_without_api(console)
            assert other.open(waiting) == 503
            other.says("cannot be (checked|opened) now")
        finally:
            sandbox.tool("start", "rabbitmq")
        wait_until("the address opens", lambda: other.open(waiting) == 200, 60, 1)
        other.shows_guest()
        answers(console, runs, "unbroken")


def answers_without_api(console: Console) -> None:
    """Keys arrive and the screen changes, told by its pictures alone."""
    console.type("clear\n")
    time.sleep(1)
    before = console.pixels((100, 100, 100), (255, 255, 255))
    console.type("ls -R /etc /bin\n")
    wait_until("the screen fills", lambda: console.pixels((100, 100, 100), (255, 255, 255)) > before + 2000, 20, 0.5)
    console.picture()
    console.type("clear\n")


def test_pages_when_the_guest_dies_then_each_says_that_the_console_ended(browser: Browser, runs: Server) -> None:
    urls = {kind: address(runs, kind) for kind in PAGES}
    with contextlib.ExitStack() as stack:
        tabs = {kind: stack.enter_context(browser.tab(f"{kind}-died")) for kind in PAGES}
        for kind, console in tabs.items():
            console.open(urls[kind])
            console.page.wait_for_selector(".xterm" if kind == "serial" else "canvas")
        time.sleep(2)
        runs.sandbox.virsh(runs.host, "destroy", runs.uuid)
        for console in tabs.values():
            console.says("(server|guest|console|host).*(clos|end|stop|gone)")
        runs.settled("SHUTOFF")
        for kind, console in tabs.items():
            assert console.open(urls[kind]) in (403, 404, 503)
            console.says("is not running|stopped")
    for kind in PAGES:
        with pytest.raises(Refused) as refused:
            address(runs, kind)
        assert refused.value.status == 409


def test_session_when_the_guests_host_restarts_then_words_say_so_and_it_opens_again(
        sandbox: Sandbox, browser: Browser, runs: Server) -> None:
    daemons = (f"{runs.host}-libvirtd", f"nova-compute-{runs.host}")
    with browser.tab("host") as console, browser.tab("host-new") as other:
        url = address(runs)
        console.open(url)
        console.shows_guest()
        for name in daemons:
            sandbox.tool("restart", name)
        answers(console, runs, "unmoved")  # neither carries a session
        for name in reversed(daemons):
            sandbox.tool("stop", name)
        try:
            os.kill(sandbox.qemu(runs.uuid), signal.SIGKILL)  # no guest outlives its host
            console.says("console has closed.*host restarted")
            assert other.open(url) == 503
            other.says("host does not answer")
        finally:
            for name in daemons:
                sandbox.tool("start", name)
        runs.settled("SHUTOFF")
        runs.act("os-start")
        runs.settled("ACTIVE")
        runs.awake()
        other.open(address(runs))
        other.shows_guest()
        answers(other, runs, "risen")


def test_proxy_when_told_to_end_then_pages_say_so_and_the_next_one_serves(
        sandbox: Sandbox, browser: Browser, runs: Server) -> None:
    with browser.tab("drained") as console:
        url = address(runs)
        console.open(url)
        console.shows_guest()
        sandbox.tool("restart", "nova-novncproxy")
        console.says("(proxy|service).*(restart|stop|end|maintenance)")
        assert console.open(url) == 200, "addresses outlive proxies"
        console.shows_guest()
        answers(console, runs, "again")

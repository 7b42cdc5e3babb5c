"""The proxies as daemons, over a real broker, with tokens that a user got from the API; guests' ends are the test's."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from nova.console import access, codes, sessions
from tests.fakes.console_front import Client, FakeEnd, echo, rfb
from tests.functional.backends import free_port, wait_until
from tests.functional.clients import User, Worker
from tests.functional.cloud import Cloud, Plan
from tests.functional.daemons import Daemon

pytestmark = pytest.mark.in_turn(5, 10)

#: proxy -> (its section, option and the console's flag of `openstack console url show`)
PROXIES = {"novncproxy": ("vnc", "novncproxy", "--novnc"), "serialproxy": ("serial_console", "serialproxy", "--serial"),
           "xvpvncproxy": ("vnc", "xvpvncproxy", "--xvpvnc")}
PORTS = {name: free_port() for name in PROXIES}


@pytest.fixture(scope="module")
def cloud(make_cloud: Callable[[Plan], Cloud]) -> Cloud:
    options: dict[str, dict[str, object]] = {"DEFAULT": {"graceful_shutdown_timeout": 1},
                                              "console": {"local_hosts": "host1"}}
    for name, (section, option, _) in PROXIES.items():
        options.setdefault(section, {}).update({f"{option}_host": "127.0.0.1", f"{option}_port": PORTS[name]})
    return make_cloud(Plan(computes=1, consoles=True, upstream=False, options=options)).start()


@pytest.fixture(scope="module", params=["in a process each", "in one process"])
def proxies(cloud: Cloud, request: pytest.FixtureRequest) -> Iterator[dict[str, Daemon]]:
    config = cloud.root / "etc" / "ctl" / "nova.conf"
    made = {name: Daemon(name, config, cloud.root / "log" / f"{name}.log") for name in PROXIES}
    if request.param == "in one process":
        first, *others = PROXIES
        more = cloud.root / "etc" / "ctl" / "proxies.conf"
        more.write_text(f"[console]\nwith_novncproxy = {', '.join(others)}\n")
        made[first].words = ("--config-file", str(more))
        made = dict.fromkeys(PROXIES, made[first])
    for daemon in set(made.values()):
        daemon.start().ready()
    yield made
    for daemon in set(made.values()):
        daemon.kill()


@pytest.fixture(scope="module")
def vm(worker: Worker) -> Iterator[str]:
    user = User(worker, "demo")
    yield user.openstack("server create --flavor m1.tiny --image tiny --nic auto --wait", "vm")["id"]
    user.do("server delete --wait vm")


class Console:
    """A token of the server's console, and where the API's records say that it leads."""

    def __init__(self, demo: User, admin: User, proxy: str) -> None:
        flag = PROXIES[proxy][2]
        self.url = demo.at("2.104" if flag == "--xvpvnc" else "2.6").openstack(f"console url show {flag} vm")["url"]
        self.token = self.url[-36:]
        self.port: int = admin.sdk("validate_console_auth_token", self.token)["port"]
        self.proxy = PORTS[proxy]

    def page(self, **headers: str) -> tuple[int, str]:
        """What a browser gets at the address (but for the proxy's port)."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy, timeout=30)
        connection.request("GET", f"{parts.path}?{parts.query}", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def websocket(self) -> Client:
        return Client(self.proxy, f"/?token={self.token}")


def test_screen_when_the_address_is_good_then_page_and_websocket_lead_to_the_guest(demo, admin, vm, proxies) -> None:
    console = Console(demo, admin, "novncproxy")
    status, page = console.page()
    assert status == 200 and "noVNC" in page and ".nova/session.js" in page
    with contextlib.closing(FakeEnd(rfb, console.port)):
        client = console.websocket()
        assert client.status == 101 and client.received(12) == b"RFB 003.008\n"
        client.close()
    code, words = console.websocket().closing()
    assert code == 1011 and words, "nobody listens there any more"
    assert "127.0.0.1" not in words


def test_serial_line_when_consoleauth_is_away_then_it_goes_on_and_new_ones_get_words(cloud, demo, admin, vm, proxies
                                                                                    ) -> None:
    console = Console(demo, admin, "serialproxy")
    assert "terminal.js" in console.page()[1]
    with contextlib.closing(FakeEnd(echo, console.port)):
        client = console.websocket()
        assert client.received(40)
        cloud.daemons["consoleauth"].kill()
        try:
            status, words = console.page(Accept="text/plain")
            assert (status, words) == (503, f"{access.NOT_NOW}\n")
            client.send(b"still here")
            assert client.received(10) == b"still here"
        finally:
            cloud.daemons["consoleauth"].start().ready()
        assert console.page(Accept="text/plain")[0] == 200
        client.close()


def test_token_when_it_is_shown_at_another_proxy_or_is_none_then_it_opens_nothing(demo, admin, vm, proxies) -> None:
    console = Console(demo, admin, "serialproxy")
    console.proxy = PORTS["novncproxy"]
    assert console.websocket().status == 403
    console.token = "00000000-0000-4000-8000-000000000000"
    refused = console.websocket()
    assert refused.status == 403 and refused.words
    assert refused.body == b""


def test_token_when_the_server_is_stopped_then_page_and_websocket_say_so(demo, admin, vm, proxies) -> None:
    console = Console(demo, admin, "serialproxy")
    demo.do("server stop vm")
    wait_until("it is off", lambda: demo.openstack("server show vm")["status"] == "SHUTOFF", 20, 0.2)
    status, words = console.page(Accept="text/plain")
    assert status == 404 and len(words.split()) > 4
    assert console.websocket().status == 403
    demo.do("server start vm")
    wait_until("it is on", lambda: demo.openstack("server show vm")["status"] == "ACTIVE", 20, 0.2)


def test_proxy_when_told_to_stop_then_users_are_told_and_no_log_has_a_token(cloud, demo, admin, vm, proxies) -> None:
    console = Console(demo, admin, "serialproxy")
    with contextlib.closing(FakeEnd(echo, console.port)):
        client = console.websocket()
        client.received(10)
        process = proxies["serialproxy"].process
        assert process
        process.popen.terminate()
        assert client.closing() == (codes.GOING_AWAY, sessions.DRAINING)
        client.close()
        assert proxies["serialproxy"].wait_end() == 0
    proxies["serialproxy"].start().ready()
    for log in (cloud.root / "log").iterdir():
        assert console.token not in log.read_text(errors="replace"), log.name


def test_viewer_when_its_token_is_good_then_it_gets_the_screen_as_it_is(demo, admin, vm, proxies) -> None:
    console = Console(demo, admin, "xvpvncproxy")
    with contextlib.closing(FakeEnd(rfb, console.port)):
        connection = http.client.HTTPConnection("127.0.0.1", console.proxy, timeout=10)
        connection.connect()
        connection.sock.sendall(f"CONNECT /console?token={console.token} HTTP/1.1\r\n\r\n".encode())
        said = b""
        while len(said) < 31:
            said += connection.sock.recv(100)
        assert said == b"HTTP/1.1 200 OK\r\n\r\nRFB 003.008\n"
        connection.close()

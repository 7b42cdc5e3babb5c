"""Clients of what is next door check certificates unless an operator says otherwise (OSSN-0033, CVE-2013-6491)."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import oslo_messaging
import pytest
from oslo_config import cfg

from nova import conf as nova_conf
from nova import errors
from nova.clients import session
from nova.clients.vendordata import DYNAMIC, Target, Vendordata, VendorOptions
from nova.model.guest.guests import GuestFacts
from nova.rpc.transport import open_transport
from tests.fakes.console_papers import Authority

FACTS = GuestFacts(uuid="u1", id=1, name="n", hostname="h", project_id="p1", image_id="i1")


class Answers(http.server.BaseHTTPRequestHandler):
    """An empty object for whoever asks."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_GET  # noqa: N815 - the library's name

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def server(authority: Authority) -> Iterator[http.server.ThreadingHTTPServer]:
    """Over TLS, with a certificate that no system knows."""
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server", server=True))
    made.socket = context.wrap_socket(made.socket, server_side=True)
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def caller(url: str, **options: object) -> session.Caller:
    """As the daemons make it, from ``[glance]``."""
    conf = nova_conf.register(cfg.ConfigOpts())
    conf([], default_config_files=[])
    session.load(conf, "glance")  # declares the options
    for name, value in options.items():
        conf.set_override(name, value, group="glance")
    service = session.ServiceEndpoint("image", "image", (url,), retries=0, read_timeout_s=5)
    return session.Caller(service, session.load(conf, "glance"))


def test_service_when_its_certificate_is_nobodys_then_it_is_not_spoken_with(server, authority):
    url = f"https://127.0.0.1:{server.server_port}"
    with pytest.raises(errors.service.Unavailable, match="(?i)certificate|SSL"):
        caller(url).call("GET", "/v2/images")
    assert caller(url, cafile=authority.ca).call("GET", "/v2/images").json() == {}
    assert caller(url, insecure=True).call("GET", "/v2/images").json() == {}


def test_vendordata_service_when_its_certificate_is_nobodys_then_it_is_told_nothing(server, authority):
    options = VendorOptions(providers=(DYNAMIC,), failure_fatal=True,
                            targets=(Target("t", f"https://127.0.0.1:{server.server_port}/"),))
    with pytest.raises(errors.metadata.VendordataFailed, match="(?i)certificate"):
        Vendordata(options).dynamic(FACTS)
    assert Vendordata(options._replace(certificates=authority.ca)).dynamic(FACTS) == {"t": {}}


@pytest.mark.parametrize(("tls", "begins"), [(True, b"\x16\x03"), (False, b"AMQP")])
def test_broker_when_tls_is_set_then_nothing_is_said_to_it_in_clear(tls, begins):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[])
        transport = open_transport(conf)
        conf.set_override("transport_url", f"rabbit://u:p@127.0.0.1:{listener.getsockname()[1]}/")
        conf.set_override("ssl", tls, group="oslo_messaging_rabbit")
        transport = open_transport(conf)
        notifier = oslo_messaging.Notifier(transport, "here", driver="messaging", topics=["t"], retry=0)
        threading.Thread(target=notifier.info, args=({}, "event", {}), daemon=True).start()
        peer, _ = listener.accept()
        with peer:
            peer.settimeout(10)
            assert peer.recv(4096).startswith(begins)

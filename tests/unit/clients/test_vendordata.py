"""Vendordata from a file and from services: a guest never waits for their repair."""

from __future__ import annotations

import http.server
import json
import threading
import time

import pytest

from nova import errors
from nova.clients import vendordata
from nova.clients.vendordata import DYNAMIC, STATIC, Target, Vendordata, VendorOptions
from nova.model.guest.guests import GuestFacts

FACTS = GuestFacts(uuid="u1", id=1, name="n", hostname="h", project_id="p1", image_id="i1", metadata={"a": "b"},
                   user_data="eA==")


class Service(http.server.BaseHTTPRequestHandler):
    """Answers with ``answer`` and keeps what it was sent."""

    answer, status, seen, location, drip_s = b"{}", 200, [], None, 0.0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).seen.append((dict(self.headers), json.loads(body)))
        self.send_response(self.status)
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()
        for byte in self.answer if self.drip_s else ():
            self.wfile.write(bytes([byte]))
            time.sleep(self.drip_s)
        if not self.drip_s:
            self.wfile.write(self.answer)

    def log_message(self, *args):
        pass


@pytest.fixture
def service():
    class Own(Service):
        seen = []

    server = http.server.HTTPServer(("127.0.0.1", 0), Own)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    Own.url = f"http://127.0.0.1:{server.server_port}/x"
    yield Own
    server.shutdown()
    server.server_close()


def source(url: str, token=lambda: None, **fields) -> Vendordata:
    options = VendorOptions(providers=(STATIC, DYNAMIC), targets=(Target("t", url),), timeouts=(0.3, 0.3))
    return Vendordata(options._replace(**fields), token)


def test_dynamic_asks_with_what_the_contract_says(service):
    service.answer = b'{"role": "web"}'
    assert source(service.url, lambda: "tok").dynamic(FACTS) == {"t": {"role": "web"}}
    headers, body = service.seen[0]
    assert body == {"project-id": "p1", "instance-id": "u1", "image-id": "i1", "user-data": "eA==", "hostname": "h",
                    "metadata": {"a": "b"}, "boot-roles": ""}
    assert (headers["User-Agent"], headers["X-Auth-Token"]) == ("openstack-nova-vendordata", "tok")
    assert headers["Content-Type"] == headers["Accept"] == "application/json"


def test_dynamic_without_credentials_sends_no_token(service):
    source(service.url).dynamic(FACTS)
    assert "X-Auth-Token" not in service.seen[0][0]


@pytest.mark.parametrize(("status", "answer"), [(500, b"{}"), (200, b"no json"), (200, b" " * ((1 << 20) + 1))])
def test_dynamic_when_the_service_fails_is_empty(service, status, answer):
    service.status, service.answer = status, answer
    assert source(service.url).dynamic(FACTS) == {"t": {}}


def test_dynamic_when_nobody_listens_is_empty_or_fatal_as_configured():
    assert source("http://127.0.0.1:1/").dynamic(FACTS) == {"t": {}}
    with pytest.raises(errors.metadata.VendordataFailed, match="t did not"):
        source("http://127.0.0.1:1/", failure_fatal=True).dynamic(FACTS)


def test_dynamic_when_keystone_is_down_is_empty(service):
    def token():
        raise OSError("keystone is down")

    assert source(service.url, token).dynamic(FACTS) == {"t": {}}
    assert service.seen == []


def test_dynamic_without_its_provider_asks_nobody(service):
    assert source(service.url, providers=(STATIC,)).dynamic(FACTS) == {}
    assert service.seen == []


@pytest.mark.parametrize(("text", "found"), [('{"a": 1}', {"a": 1}), ("[1]", {}), ("{", {}), (None, {})])
def test_static_is_the_files_object_or_empty(tmp_path, text, found):
    path = tmp_path / "vendor.json"
    if text is not None:
        path.write_text(text)
    assert Vendordata(VendorOptions(static_file=str(path))).static() == found


def test_static_without_a_file_is_empty_and_without_its_provider_none():
    assert Vendordata(VendorOptions()).static() == {}
    assert Vendordata(VendorOptions(providers=(DYNAMIC,))).static() is None


def test_parse_targets_skips_bad_and_second_entries(caplog):
    entries = ["a@http://x/1", "bad", "@http://x", "a@http://y", "b@ftp://z", "c@https://w@v"]
    assert vendordata.parse_targets(entries) == (Target("a", "http://x/1"), Target("c", "https://w@v"))
    assert len(caplog.records) == 4


def test_from_conf_with_an_unknown_provider_names_it():
    from oslo_config import cfg

    from nova.conf import api

    conf = cfg.ConfigOpts()
    conf.register_opts(api.OPTS, group="api")
    conf([])
    assert vendordata.from_conf(conf).static() == {}
    conf.set_override("vendordata_providers", ["StaticYAML"], group="api")
    with pytest.raises(errors.metadata.VendordataProvider, match="StaticYAML"):
        vendordata.from_conf(conf)


def test_dynamic_when_the_target_redirects_then_the_token_goes_nowhere_else(service):
    service.status, service.location = 307, service.url + "/else"
    fatal = source(service.url, lambda: "tok", failure_fatal=True)
    with pytest.raises(errors.metadata.VendordataFailed, match="redirects"):
        fatal.dynamic(FACTS)
    assert len(service.seen) == 1


def test_dynamic_when_the_answer_drips_then_it_is_given_up(service, monkeypatch):
    monkeypatch.setattr(vendordata, "LONGEST_S", 0.2)
    service.drip_s, service.answer = 0.05, b"{" + b" " * 100 + b"}"
    started = time.monotonic()
    assert source(service.url).dynamic(FACTS) == {"t": {}}
    assert time.monotonic() - started < 2

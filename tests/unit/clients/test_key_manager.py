"""Keys of encrypted volumes, from Barbican over real HTTP, and the fixed one."""

from __future__ import annotations

import http.server
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from keystoneauth1 import session as ksession

from nova import context, errors
from nova.clients import key_manager
from nova.clients.key_manager import FIXED_ID, VolumeKeys
from nova.clients.session import Credentials
from tests.fakes.cinder import Ours

KEY_ID = "5f6c6f6e-1e0f-4d8e-8b3e-2f0a4b9a5c11"
KEY = bytes(range(32))
JOE = context.RequestContext(request_id="req-1", user_id="joe", project_id="p", token="joes")


class Barbican(http.server.BaseHTTPRequestHandler):
    keys: dict[str, bytes] = {}
    seen: list[Any] = []
    readers = ("joes", "ours")

    def do_GET(self) -> None:
        type(self).seen.append((self.path, self.headers["X-Auth-Token"], self.headers["Accept"]))
        key = self.keys.get(self.path.removeprefix("/v1/secrets/").removesuffix("/payload"))
        status = 404 if key is None else 200 if self.headers["X-Auth-Token"] in self.readers else 403
        self.send_response(status)
        self.send_header("Content-Length", str(len(key or b"") if status == 200 else 0))
        self.end_headers()
        if status == 200 and key:
            self.wfile.write(key)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def barbican():
    served = type("Own", (Barbican,), {"seen": [], "keys": {KEY_ID: KEY, "empty": b""}})
    server = http.server.HTTPServer(("127.0.0.1", 0), served)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    served.url = f"http://127.0.0.1:{server.server_port}"
    yield served
    server.shutdown()
    server.server_close()


def keys(url: str | None = None, auth: Any = None, **options: Any) -> VolumeKeys:
    given = SimpleNamespace(**{"backend": "barbican", "fixed_key": None, **options})
    address = SimpleNamespace(barbican_endpoint=url, barbican_region_name=None, barbican_endpoint_type="public")
    return key_manager.of_groups(given, address, Credentials(ksession.Session(), auth))


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_key_when_barbican_has_it_then_its_hex_digits_are_the_passphrase(barbican, path):
    with context.entered(JOE):
        assert keys(barbican.url + path, Ours()).passphrase(KEY_ID, as_user=True) == KEY.hex()
    assert barbican.seen == [(f"/v1/secrets/{KEY_ID}/payload", "joes", "application/octet-stream")]


def test_key_when_the_user_is_gone_then_we_ask_as_ourselves_at_the_catalogs_address(barbican):
    assert keys(None, Ours(barbican.url)).passphrase(KEY_ID) == KEY.hex()
    assert barbican.seen[0][1] == "ours"


def test_key_when_it_is_read_then_it_is_in_no_log(barbican, caplog):
    with caplog.at_level(logging.DEBUG):
        passphrase = keys(None, Ours(barbican.url)).passphrase(KEY_ID)
    assert passphrase not in caplog.text and KEY.decode("latin-1") not in caplog.text


@pytest.mark.parametrize("key_id", ["unknown", "empty", "../../users"])
def test_key_when_there_is_none_then_the_error_names_it(barbican, key_id):
    with pytest.raises(errors.volume.NoKey, match=key_id):
        keys(None, Ours(barbican.url)).passphrase(key_id)
    assert all(path.startswith("/v1/secrets/") and path.count("/") == 4 for path, *_ in barbican.seen)


def test_key_when_we_may_not_read_it_then_the_error_says_so(barbican):
    barbican.readers = ("joes",)
    with pytest.raises(errors.volume.NoKey, match="403"):
        keys(None, Ours(barbican.url)).passphrase(KEY_ID)


def test_key_when_barbican_is_away_then_it_cannot_be_had(barbican):
    with pytest.raises(errors.volume.NoKey), context.waited_for(0.5):
        keys("http://127.0.0.1:1", Ours()).passphrase(KEY_ID)


def test_fixed_key_when_a_volume_has_it_then_nobody_is_asked(barbican):
    both = keys(barbican.url, Ours(), fixed_key="0A" * 32)
    assert both.passphrase(FIXED_ID) == "0a" * 32 and barbican.seen == []
    assert both.passphrase(KEY_ID) == KEY.hex()


@pytest.mark.parametrize("backend", ["nova.keymgr.conf_key_mgr.ConfKeyManager", "barbican"])
def test_fixed_key_when_there_is_no_barbican_then_it_is_the_only_one(backend):
    only = keys(None, None, backend=backend, fixed_key="0a" * 32)
    assert only.passphrase(FIXED_ID, as_user=True) == "0a" * 32
    with pytest.raises(errors.volume.NoKey, match=KEY_ID):
        only.passphrase(KEY_ID)


def test_keys_when_none_are_configured_then_each_is_refused():
    with pytest.raises(errors.volume.NoKey):
        keys().passphrase(FIXED_ID)


@pytest.mark.parametrize("options", [
    {"fixed_key": "no hex"}, {"fixed_key": "abc"}, {"backend": "vault"},
    {"backend": "nova.keymgr.conf_key_mgr.ConfKeyManager"}])
def test_options_when_they_make_no_sense_then_the_daemon_says_which(options):
    with pytest.raises(errors.config.KeyManager, match="key_manager"):
        keys(**options)

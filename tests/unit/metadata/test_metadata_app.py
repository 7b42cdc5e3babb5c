"""The metadata service as a guest sees it, over the real contract's codec."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import io
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import webob
from webob import Request

from nova import errors
from nova.errors import Conflict, NotFound, Unavailable
from nova.metadata.app import MetadataApp
from nova.metadata.cache import Cache, Making
from nova.metadata.options import MetadataOptions, from_conf
from nova.model.guest import guest_tree
from nova.model.guest.guests import GuestFacts, GuestPassword, GuestQuery
from nova.model.network.networks import FixedAddress, Interface
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from tests.fakes.contract import ContractFake

SECRET, UUID = "s3cret", "6f70656e-7374-4163-8b00-000000000001"
FACTS = GuestFacts(
    uuid=UUID, id=26, name="web", hostname="web", project_id="p1", key_name="k", public_key="ssh-ed25519 AAAA me",
    user_data=base64.b64encode(b"\x00#!/bin/sh\n").decode(),
    interfaces=(Interface(id="v", mac="fa:16:3e:00:00:01", network_id="n", label="l", dhcp_server="10.0.0.1",
                          addresses=(FixedAddress(address="10.0.0.5"),)),))


class Conductor(ContractFake, contract=ConductorHostRPC):
    """It knows one guest, and its password."""

    def __init__(self) -> None:
        super().__init__()
        self.password = ""

    def guest_facts(self, host: str, query: GuestQuery) -> GuestFacts:
        if query.address != "10.0.0.5" and query.server_uuid != UUID:
            raise NotFound()
        return msgspec.structs.replace(FACTS, password=self.password)

    def set_guest_password(self, host: str, password: GuestPassword) -> None:
        assert password.server_uuid == UUID
        if self.password:
            raise Conflict("a password is stored already")
        self.password = password.password

    @property
    def queries(self) -> list[GuestQuery]:
        return [query for _host, query in self.asked("guest_facts")]


class Vendor:
    def __init__(self) -> None:
        self.asked = 0

    def static(self):
        return {"cloud": "ours"}

    def dynamic(self, facts):
        self.asked += 1
        return {"target": {"server": facts.uuid}}


@pytest.fixture
def conductor() -> Conductor:
    return Conductor()


@pytest.fixture
def vendor() -> Vendor:
    return Vendor()


@pytest.fixture
def app(conductor, vendor) -> MetadataApp:
    return MetadataApp(conductor.client("meta1"), "meta1", MetadataOptions(), vendor,
                       today=lambda: datetime.date(2026, 1, 1))


def ask(app, path: str, address: str = "10.0.0.5", method: str = "GET", headers=None, body: bytes = b"",
        ) -> webob.Response:
    request = Request.blank(path, method=method, headers=headers or {}, remote_addr=address)
    if body:
        request.body = body
    return request.get_response(app)


def test_guest_gets_its_own_metadata_by_its_address(app, conductor):
    reply = ask(app, "/openstack/latest/meta_data.json")
    assert reply.status_int == 200 and reply.json["uuid"] == UUID
    assert conductor.queries == [GuestQuery(address="10.0.0.5")]


@pytest.mark.parametrize("address", ["::ffff:10.0.0.5", "10.0.0.5"])
def test_address_may_be_mapped_into_ipv6(app, address):
    assert ask(app, "/latest/meta-data/instance-id", address).body == b"i-0000001a"


def test_headers_do_not_say_who_asks_without_a_proxy(app):
    headers = {"X-Forwarded-For": "10.0.0.5", "X-Instance-ID": UUID, "X-Tenant-ID": "p1"}
    assert ask(app, "/latest/meta-data/instance-id", "10.0.0.9", headers=headers).status_int == 404


@pytest.mark.parametrize("address", ["10.0.0.9", "", "nonsense"])
def test_unknown_address_is_404(app, address):
    assert ask(app, "/openstack/latest/meta_data.json", address).status_int == 404


@pytest.mark.parametrize(("path", "body"), [
    ("/", "\n".join([*guest_tree.EC2_VERSIONS, "latest"])),
    ("/ec2", "\n".join([*guest_tree.EC2_VERSIONS, "latest"])),
    ("/openstack", "\n".join([*guest_tree.OPENSTACK_VERSIONS, "latest"])),
    ("/openstack/", "\n".join([*guest_tree.OPENSTACK_VERSIONS, "latest"])),
    ("/latest", "meta-data/\nuser-data"),
    ("/latest/", "meta-data/\nuser-data"),
    ("/ec2/latest/", "meta-data/\nuser-data"),
    ("/openstack/2012-08-10/", "meta_data.json\nuser_data"),
    ("/latest/meta-data/public-keys/", "0=k"),
    ("/latest/meta-data/public-keys/0/", "openssh-key"),
    ("/latest/meta-data/public-keys/0/openssh-key", "ssh-ed25519 AAAA me"),
    ("/2009-04-04//meta-data/local-ipv4", "10.0.0.5"),
    ("/openstack/latest/password", ""),
])
def test_paths_answer_plain_text(app, path, body):
    reply = ask(app, path)
    assert (reply.status_int, reply.text) == (200, body)
    assert reply.content_type == "text/plain"


@pytest.mark.parametrize("path", [
    "/openstack/latest/meta_data.json", "/openstack/2013-10-17/vendor_data.json",
    "/openstack/2012-08-10/network_data.json", "/openstack/2016-10-06/vendor_data2.json"])
def test_json_files_say_so(app, path):
    assert ask(app, path).content_type == "application/json"
    assert isinstance(ask(app, path).json, dict)


@pytest.mark.parametrize("path", [
    "/openstack/2012-08-10/password", "/openstack/1999-01-01/meta_data.json", "/1999-01-01/", "/nonsense",
    "/openstack/content", "/openstack/content/0000", "/openstack/latest/../latest/meta_data.json",
    "/latest/meta-data/kernel-id", "/openstack/2016-06-30/vendor_data2.json", "/openstack/latest/password/x"])
def test_unknown_paths_and_versions_are_404(app, path):
    assert ask(app, path).status_int == 404


def test_every_file_of_the_tree_is_served(app):
    for path in guest_tree.tree(FACTS):
        assert ask(app, f"/{path}").status_int == 200, path


def test_user_data_is_raw(app):
    reply = ask(app, "/openstack/latest/user_data")
    assert reply.body == ask(app, "/latest/user-data").body == b"\x00#!/bin/sh\n"
    assert reply.content_type == "text/plain"


def test_head_has_headers_alone(app):
    reply = ask(app, "/latest/meta-data/instance-id", method="HEAD")
    assert reply.status_int == 200 and reply.content_length == 10 and reply.body == b""


def test_other_methods_are_refused(app):
    assert ask(app, "/latest/meta-data/instance-id", method="POST").status_int == 405
    assert ask(app, "/openstack/latest/password", method="PUT").status_int == 400
    assert ask(app, "/openstack/latest/password", method="DELETE").status_int == 400


def test_answers_are_remembered_for_a_while(app, conductor):
    for _ in range(5):
        ask(app, "/openstack/latest/meta_data.json")
        ask(app, "/latest/meta-data/")
    assert len(conductor.queries) == 1


def test_answers_are_not_remembered_when_the_option_says_0(conductor):
    app = MetadataApp(conductor.client("meta1"), "meta1", MetadataOptions(cache_s=0))
    ask(app, "/latest/meta-data/")
    ask(app, "/latest/meta-data/")
    assert len(conductor.queries) == 2


def test_address_when_another_server_gets_it_then_it_is_told_nothing_of_the_first_for_long(conductor):
    """A server's own id never becomes another's, so what is known by that is remembered for longer."""
    short = MetadataOptions(address_cache_s=0.05)
    app = MetadataApp(conductor.client("meta1"), "meta1", short)
    assert ask(app, "/latest/user-data").status_int == 200
    other = msgspec.structs.replace(FACTS, uuid="other", id=27, user_data=None)
    conductor.given(guest_facts=other)
    time.sleep(0.06)
    assert ask(app, "/latest/meta-data/instance-id").body == b"i-0000001b"
    assert ask(app, "/latest/user-data").status_int == 404
    assert MetadataOptions().address_cache_s < 5 < MetadataOptions().cache_s


def test_vendordata_when_another_server_gets_the_address_then_its_services_are_asked_again(app, conductor, vendor):
    assert ask(app, "/openstack/latest/vendor_data2.json").json["target"] == {"server": UUID}
    conductor.given(guest_facts=msgspec.structs.replace(FACTS, uuid="other"))
    app._by_address.forget(GuestQuery(address="10.0.0.5"))
    assert ask(app, "/openstack/latest/vendor_data2.json").json["target"] == {"server": "other"}


def test_unknown_guests_are_asked_for_again(app, conductor):
    conductor.given(guest_facts=NotFound())
    assert ask(app, "/latest/").status_int == 404
    conductor.given(guest_facts=FACTS)
    assert ask(app, "/latest/").status_int == 200


def test_password_is_kept_once(app, conductor):
    assert ask(app, "/openstack/latest/password").body == b""
    assert ask(app, "/openstack/2013-04-04/password", method="POST", body=b"ZW5j").status_int == 200
    assert ask(app, "/openstack/latest/password").body == b"ZW5j", "the cache does not hide it"
    assert ask(app, "/openstack/latest/password", method="POST", body=b"eA==").status_int == 409
    assert conductor.password == "ZW5j"


def test_password_when_two_come_at_once_then_one_is_kept(app, conductor):
    """Both looked before either wrote: the conductor says which came first."""
    conductor.given(guest_facts=FACTS)
    answers = [ask(app, "/openstack/latest/password", method="POST", body=body).status_int
               for body in (b"eA==", b"eQ==")]
    assert answers == [200, 409] and conductor.password == "eA=="


@pytest.mark.parametrize("body", [b"x" * 1021, "pässword".encode()])
def test_password_that_cannot_be_kept_is_400(app, conductor, body):
    assert ask(app, "/openstack/latest/password", method="POST", body=body).status_int == 400
    assert conductor.password == ""


def test_password_of_1020_bytes_is_kept(app, conductor):
    assert ask(app, "/openstack/latest/password", method="POST", body=b"x" * 1020).status_int == 200


@pytest.mark.parametrize("length", ["nonsense", "-1", "99999999999"])
def test_password_with_a_lying_length_is_400(app, length):
    environ = Request.blank("/openstack/latest/password", method="POST", remote_addr="10.0.0.5").environ
    environ |= {"CONTENT_LENGTH": length, "wsgi.input": io.BytesIO(b"x")}
    seen = []
    app(environ, lambda status, headers: seen.append(status))
    assert seen == ["400 Bad Request"]


def test_conductor_away_is_503_with_a_time_to_come_again(app, conductor):
    conductor.given(guest_facts=Unavailable("rabbit at 10.9.9.9 is away"))
    reply = ask(app, "/latest/")
    assert reply.status_int == 503 and reply.headers["Retry-After"] and "10.9.9.9" not in reply.text


def test_our_own_fault_is_500_without_its_text(app, conductor):
    conductor.given(guest_facts=RuntimeError("secret innards"))
    reply = ask(app, "/latest/")
    assert reply.status_int == 500 and "innards" not in reply.text


def test_vendordata_services_are_asked_for_their_own_file_only(app, vendor):
    ask(app, "/openstack/latest/meta_data.json")
    assert ask(app, "/openstack/latest/vendor_data.json").json == {"cloud": "ours"}
    assert vendor.asked == 0
    for _ in range(3):
        assert ask(app, "/openstack/latest/vendor_data2.json").json == {
            "static": {"cloud": "ours"}, "target": {"server": UUID}}
    assert vendor.asked == 1


# --- behind a signing proxy ---

def signature(text: str, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


SIGNED = {"X-Instance-ID": UUID, "X-Tenant-ID": "p1", "X-Instance-ID-Signature": signature(UUID),
          "X-Forwarded-For": "10.0.0.5"}


@pytest.fixture
def behind(conductor) -> MetadataApp:
    return MetadataApp(conductor.client("meta1"), "meta1", MetadataOptions(behind_proxy=True, secret=SECRET))


def test_signed_guest_gets_its_metadata(behind, conductor):
    reply = ask(behind, "/openstack/latest/meta_data.json", "127.0.0.1", headers=SIGNED)
    assert reply.json["uuid"] == UUID
    assert conductor.queries == [GuestQuery(server_uuid=UUID, project_id="p1")]


@pytest.mark.parametrize(("change", "status"), [
    ({"X-Instance-ID": ""}, 400),
    ({"X-Tenant-ID": ""}, 400),
    ({"X-Instance-ID-Signature": ""}, 400),
    ({"X-Instance-ID-Signature": signature(UUID, "other")}, 403),
    ({"X-Instance-ID-Signature": "ü"}, 403),
    ({"X-Instance-ID": UUID + ", x"}, 400),
    ({"X-Instance-ID": "other", "X-Instance-ID-Signature": signature("other")}, 404),
    ({"X-Tenant-ID": "p2"}, 404),
    ({"X-Forwarded-For": ""}, 400),
    ({"X-Metadata-Provider": "net", "X-Metadata-Provider-Signature": signature("net"), "X-Forwarded-For": ""}, 400),
    ({"X-Metadata-Provider": "net", "X-Metadata-Provider-Signature": signature("net"),
      "X-Forwarded-For": "10.0.0.5, 10.0.0.6"}, 400),
    ({"X-Metadata-Provider": "net", "X-Metadata-Provider-Signature": signature("net"), "X-Forwarded-For": "x"}, 400),
    ({"X-Metadata-Provider": "net", "X-Metadata-Provider-Signature": "bad"}, 403),
    ({"X-Metadata-Provider": "net"}, 400),
])
def test_doubtful_requests_behind_a_proxy_are_refused(behind, change, status):
    headers = {name: value for name, value in (SIGNED | change).items() if value}
    assert ask(behind, "/openstack/latest/meta_data.json", "10.0.0.5", headers=headers).status_int == status


def test_signed_guest_is_not_told_from_the_cache_under_another_project(behind):
    assert ask(behind, "/latest/", headers=SIGNED).status_int == 200
    assert ask(behind, "/latest/", headers=SIGNED | {"X-Tenant-ID": "p2"}).status_int == 404


def test_options_with_a_proxy_and_no_secret_are_refused():
    with pytest.raises(errors.metadata.NoSecret, match="metadata_proxy_shared_secret"):
        MetadataOptions(behind_proxy=True)
    assert SECRET not in repr(MetadataOptions(behind_proxy=True, secret=SECRET))


def test_options_from_conf_have_the_documented_defaults():
    from oslo_config import cfg

    from nova.conf import api, network, neutron

    conf = cfg.ConfigOpts()
    conf.register_opts(network.OPTS)
    conf.register_opts(api.OPTS, group="api")
    conf.register_opts(neutron.OPTS, group="neutron")
    conf([], default_config_files=[])
    found = from_conf(conf)
    assert (found.cache_s, found.behind_proxy, found.tree) == (15, False, guest_tree.TreeOptions())
    assert not found.forwarded_for


@pytest.mark.parametrize(("text", "reason"), [(None, "No such file"), ("{% for ifc in interfaces %}", r"\$interfaces")])
def test_template_that_cannot_be_used_when_read_then_start_is_refused(tmp_path, text, reason):
    from nova.metadata.options import tree_options

    path = tmp_path / "template"
    if text is not None:
        path.write_text(text)
    api = types.SimpleNamespace(dhcp_domain="", config_drive_skip_versions="")
    with pytest.raises(errors.metadata.Template, match=reason):
        tree_options(types.SimpleNamespace(api=api, injected_network_template=str(path)))
    path.write_text("mine\n$interfaces")
    found = tree_options(types.SimpleNamespace(api=api, injected_network_template=str(path)))
    assert found.network_template == "mine\n$interfaces"


def test_provider_that_signs_when_it_asks_then_the_conductor_is_asked_for_its_guest(behind, conductor):
    headers = {"X-Metadata-Provider": "lb-1", "X-Metadata-Provider-Signature": signature("lb-1"),
               "X-Forwarded-For": "10.0.0.5"}
    assert ask(behind, "/latest/meta-data/instance-id", "127.0.0.1", headers=headers).body == b"i-0000001a"
    assert conductor.queries == [GuestQuery(provider_id="lb-1", address="10.0.0.5")]


def test_answer_of_another_server_than_was_asked_for_then_404(behind, conductor):
    """Nobody's word alone gives a guest's secrets away."""
    conductor.given(guest_facts=msgspec.structs.replace(FACTS, uuid="another"))
    assert ask(behind, "/latest/", headers=SIGNED).status_int == 404


@pytest.mark.parametrize(("forwarded", "status"), [("10.0.0.5", 200), ("10.0.0.9", 404), ("a, b", 400), ("", 404)])
def test_forwarded_address_when_the_option_says_so_then_it_is_the_guests(conductor, forwarded, status):
    app = MetadataApp(conductor.client("meta1"), "meta1", MetadataOptions(forwarded_for=True))
    assert ask(app, "/latest/", "10.9.9.9", headers={"X-Forwarded-For": forwarded}).status_int == status


# --- many at once

class Slow(Conductor):
    """Answers one guest when it is told to, others at once."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go = threading.Event(), threading.Event()

    def guest_facts(self, host: str, query: GuestQuery) -> GuestFacts:
        if query.address == "10.0.0.7":
            self.reached.set()
            assert self.go.wait(10)
            return msgspec.structs.replace(FACTS, id=7, name="busy")
        return Conductor.guest_facts.own(self, host, query)


def test_busy_guest_when_it_asks_too_much_then_it_is_turned_away_and_others_are_not():
    slow = Slow()
    app = MetadataApp(slow.client("meta1"), "meta1", MetadataOptions(in_flight=4))
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(ask, app, "/latest/meta-data/instance-id", "10.0.0.7") for _ in range(4)]
        try:
            assert slow.reached.wait(5)
            _until(lambda: app._turnstile._inside[GuestQuery(address="10.0.0.7")] == 4)
            turned_away = ask(app, "/latest/", "10.0.0.7")
            assert turned_away.status_int == 429 and turned_away.headers["Retry-After"]
            assert ask(app, "/latest/meta-data/instance-id").body == b"i-0000001a", "another guest's own answer"
        finally:
            slow.go.set()
        assert {one.result().body for one in waiting} == {b"i-00000007"}
    assert [query.address for query in slow.queries].count("10.0.0.7") == 1, "one call for all that wait"
    assert len(app._turnstile) == 0 and ask(app, "/latest/", "10.0.0.7").status_int == 200


def _until(true) -> None:
    for _ in range(500):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it never came to be")


def test_making_that_a_forget_overtakes_then_it_is_not_kept():
    """What a guest was told before its password was kept, and what it is told after, are not the same."""
    cache: Cache[str] = Cache(60)
    begun, go = threading.Event(), threading.Event()

    def old() -> str:
        begun.set()
        assert go.wait(5)
        return "old"
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(cache.get, "a", old)
        assert begun.wait(5)
        cache.forget("a")
        assert cache.get("a", lambda: "new") == "new"
        go.set()
        assert first.result() == "old"
    assert cache.get("a", lambda: "newest") == "new"
    assert cache.get("a", lambda: "newest", fresh=True) == "newest" == cache.get("a", lambda: "x")


def test_those_who_wait_when_the_making_fails_then_they_hear_why():
    making: Making[int] = Making()

    def fail() -> int:
        raise NotFound()
    for hear in (lambda: making.run(fail), making.wait, making.wait):
        with pytest.raises(NotFound):
            hear()


def test_password_when_it_was_cleared_elsewhere_then_the_next_look_shows_it(app, conductor):
    conductor.password = "ZW5j"
    assert ask(app, "/openstack/latest/password").body == b"ZW5j"
    conductor.password = ""
    assert ask(app, "/openstack/latest/password").body == b""


def test_source_has_the_contracts_methods():
    assert {"guest_facts", "set_guest_password"} <= ConductorHostRPC.methods.keys()
    assert ConductorHostRPC.methods["guest_facts"].arguments.__struct_fields__ == ("host", "query")


# --- the cache ---

def test_cache_is_bounded_in_time_and_number():
    now = [0.0]
    cache: Cache[int] = Cache(10, most=2, clock=lambda: now[0])
    made = iter(range(100))
    assert [cache.get("a", lambda: next(made)) for _ in range(2)] == [0, 0]
    now[0] = 10.0
    assert cache.get("a", lambda: next(made)) == 1
    cache.get("b", lambda: next(made))
    cache.get("c", lambda: next(made))
    assert len(cache) == 2 and cache.get("a", lambda: next(made)) == 4


def test_cache_keeps_no_failure():
    cache: Cache[int] = Cache(10)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.get("a", lambda: 1) == 1
    cache.forget("a")
    assert cache.get("a", lambda: 2) == 2

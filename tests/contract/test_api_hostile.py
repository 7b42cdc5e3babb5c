"""Hostile input at the door, for every operation alike: the right 4xx in the right form, and nobody behind is asked.

Every input is tried on the routes of :data:`ALL_INPUTS` and, in turn, some of them on every other route; with
``--long`` all on all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
import webob

from nova import errors
from nova.api import app, faults, versions
from nova.api.routes import ROUTES
from nova.api.routing import Route
from nova.legacy.api_extras import EXTRAS
from nova.web import bodies
from tests import sampling
from tests.fakes.api import ADMIN, configuration
from tests.fakes.whole_api import WholeApiClient

UUID = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"
IDS = ("x-openstack-request-id", "x-compute-request-id")


class Nobody:
    """A conductor that must not be asked: whoever does gets a 500, and the test fails."""

    def __getattr__(self, name: str) -> Any:
        def fail(*args: Any) -> Any:
            raise AssertionError(f"the conductor was asked: {name}")
        return fail


@pytest.fixture(scope="module")
def alone() -> WholeApiClient:
    client = WholeApiClient(token=ADMIN)
    client.application = app.from_conf(Nobody(), Nobody(), Nobody(), configuration(), extras=EXTRAS)
    return client


def last(route: Route) -> str:
    return route.until or versions.text(versions.MAX)


def filled(route: Route, value: str = UUID) -> str:
    return "/".join(value if part.startswith("{") else part for part in route.path.split("/"))


def each(wanted: Any) -> Any:
    return pytest.mark.parametrize("route", [pytest.param(route, id=f"{route.id} from {route.since}")
                                             for route in ROUTES if wanted(route)])


#: Routes that get every input in every run: one of each kind of method, body, query and name.
ALL_INPUTS = {"POST /servers", "PUT /servers/{server_id}", "POST /servers/{server_id}/action#reboot",
              "GET /servers", "GET /servers/{server_id}", "DELETE /servers/{server_id}", "GET /flavors/{flavor_id}",
              "PUT /os-quota-sets/{tenant_id}"}
FEW = 4
NUMBERS = {(route.id, route.since): number for number, route in enumerate(ROUTES)}


def tried(inputs: Sequence[str], route: Route) -> Sequence[str]:
    """Those of the inputs that this run sends to the route."""
    return inputs if route.id in ALL_INPUTS else sampling.turn(inputs, NUMBERS[route.id, route.since], FEW)


@contextmanager
def named(what: str) -> Iterator[None]:
    """A failure says with which input."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"input: {what[:100]!r}")
        raise


def test_routes_that_get_every_input_are_there() -> None:
    assert {route.id for route in ROUTES} >= ALL_INPUTS


def assert_refused(answer: webob.Response, *statuses: int) -> None:
    """A 4xx in one of the forms the API has, with the request's id."""
    assert answer.status_int in (statuses or range(400, 500)), answer.text[:500]
    assert all(answer.headers[name].startswith("req-") for name in IDS)
    assert len(answer.body) < 4000, "an answer as big as the attack"
    if answer.headers["Content-Type"].startswith("text/"):
        assert answer.status_int in (401, 404, 413)
        assert versions.HEADER not in answer.headers
        return
    assert answer.headers["Content-Type"] == faults.CONTENT_TYPE
    (name, fault), = answer.json.items()
    assert name == faults.NAMES.get(answer.status_int, faults.OTHER_NAME)
    assert fault["code"] == answer.status_int and fault["message"]


def takes_body(route: Route) -> bool:
    return route.method in bodies.WITH_BODY


def wants_object(route: Route) -> bool:
    """Its body is an object with something in it (not so: a tag's PUT, and ``unlock`` at new versions)."""
    if route.body is None:
        return False
    for body in (None, {}):
        try:
            route.body.check(body, versions.number(last(route)))
        except errors.api.BadInput:
            continue
        return False
    return True


# bodies

#: What no operation takes, whatever it is.
MALFORMED: dict[str, bytes] = {
    "cut off": b'{"server": {', "no JSON": b"server", "two values": b"{} {}", "blanks": b"  \n",
    "single quotes": b"{'a': 1}", "comment": b'{"a": 1 /* one */}', "trailing comma": b'{"a": 1,}',
    "bytes of Latin-1": b'{"a": "\xe9"}', "surrogate as UTF-8": b'{"a": "\xed\xa0\x80"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"), "byte order mark": b'\xef\xbb\xbf{"a": 1}',
    "lone surrogate": b'{"a": "\\ud800"}', "low surrogate": b'{"a": "\\udc00 b"}',
    "two high": b'{"a": "\\ud800\\ud800"}',
    "raw NUL": b'{"a": "\x00"}', "NUL": b'{"a": "b\\u0000"}', "NUL in a key": b'{"a\\u0000": "b"}',
    "raw line end": b'{"a": "\n"}', "NaN": b'{"a": NaN}', "infinity": b'{"a": -Infinity}', "1e400": b'{"a": 1e400}',
    "30 digits": b'{"a": [{"b": 1' + b"0" * 30 + b"}]}", "5000 digits": b'{"a": ' + b"1" * 5000 + b"}",
    "key twice": b'{"a": 1, "a": 2}', "key twice below": b'{"a": {"b": [{"c": 1, "c": 1}]}}',
    "key twice by escape": b'{"a": 1, "\\u0061": 2}',
    "10,000 lists": b"[" * 10_000 + b"]" * 10_000, "10,000 objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "900 lists": b'{"a":' + b"[" * 900 + b"]" * 900 + b"}", "60 objects": b'{"a":' * 60 + b"1" + b"}" * 60}

#: JSON that is no object: refused by every operation whose body is one.
NO_OBJECT: dict[str, Any] = {"list": [], "list of objects": [{"server": {}}], "text": "server", "number": 7,
                             "null": None, "true": True, "empty": {}, "astral": {"\U0001f600" * 300: "\U0001f600"}}


@each(takes_body)
def test_body_that_no_operation_takes_is_400(alone: WholeApiClient, route: Route) -> None:
    for name in tried(list(MALFORMED), route):
        with named(name):
            assert_refused(alone.request(route.method, filled(route), raw=MALFORMED[name], version=last(route)), 400)


@each(wants_object)
def test_body_that_is_no_object_of_the_operation_is_400(alone: WholeApiClient, route: Route) -> None:
    for name in tried(list(NO_OBJECT), route):
        with named(name):
            assert_refused(alone.request(route.method, filled(route), raw=msgspec.json.encode(NO_OBJECT[name]),
                                         version=last(route)), 400)


@each(wants_object)
def test_body_when_missing_is_400(alone: WholeApiClient, route: Route) -> None:
    assert_refused(alone.request(route.method, filled(route), version=last(route)), 400)
    assert_refused(alone.request(route.method, filled(route), raw=b"", version=last(route)), 400)


OTHER_TYPES = ("application/xml", "text/plain", "multipart/form-data; boundary=x", "json", "*/*",
               "application/x-www-form-urlencoded", "application/json, text/plain", "\xff")


@each(takes_body)
def test_body_of_another_media_type_is_415(alone: WholeApiClient, route: Route) -> None:
    for kind in tried(OTHER_TYPES, route):
        with named(kind):
            assert_refused(alone.request(route.method, filled(route), raw=b"<a/>", headers={"Content-Type": kind},
                                         version=last(route)), 415)


@each(takes_body)
def test_body_above_the_limit_is_413(alone: WholeApiClient, route: Route) -> None:
    assert_refused(alone.request(route.method, filled(route), raw=b" " * 114_689, version=last(route)), 413)


def test_body_without_a_media_type_is_taken_for_json(alone: WholeApiClient) -> None:
    answer = alone.request("POST", "/servers", raw=b'{"server": {}}', headers={"Content-Type": ""})
    assert_refused(answer, 400)
    assert "name" in answer.text


def test_body_of_a_read_is_not_looked_at() -> None:
    client = WholeApiClient(token=ADMIN)
    for method in ("GET", "DELETE"):
        answer = client.request(method, "/flavors/x", raw=b"[" * 10_000, headers={"Content-Type": "a/b"})
        assert answer.status_int == 404
    assert client.request("GET", "/flavors", raw=b"\xff").status_int == 200


def test_action_with_a_huge_name_is_400_in_few_words(alone: WholeApiClient) -> None:
    assert_refused(alone.post(f"/servers/{UUID}/action", {"x" * 100_000: None}), 400)
    assert_refused(alone.post(f"/servers/{UUID}/action", {f"a{n}": None for n in range(5000)}), 400)


@pytest.mark.parametrize(("raw", "words"), [
    (b'{"server": {"name": "a\\u0000"}}', "server.name holds a NUL character"),
    (b'{"server": {"networks": [{}, {"x": 99999999999999999999}]}}', "server.networks[1].x is an integer beyond"),
    (b'{"server": {"name": 1, "name": 2}}', "The key 'name' is there more than once"),
    (b'{"server": {"name": "\xe9"}}', "not encoded in UTF-8"),
    (b"[" * 200 + b"]" * 200, "nested too deeply: at most 50 levels"),
])
def test_body_when_refused_says_where_and_why(alone: WholeApiClient, raw: bytes, words: str) -> None:
    answer = alone.request("POST", "/servers", raw=raw)
    assert_refused(answer, 400)
    assert words in answer.json["badRequest"]["message"]


# paths and methods

#: Parts of a path that name nothing: no UTF-8, a NUL, a slash, longer than any name.
NAMELESS = ("%FF", "%C3%28", "%ED%A0%80", "%F4%90%80%80", "%00", "a%00b", "x%2Fy", "%2F", "x" * 256, "%61" * 4000)


@each(lambda route: route.names)
def test_path_that_can_name_nothing_is_404(alone: WholeApiClient, route: Route) -> None:
    # at the end of a path a slash makes another path of it, that may be there
    parts = [part for part in NAMELESS if not (route.path.endswith("}") and "%2F" in part)]
    for part in tried(parts, route):
        with named(part):
            assert_refused(alone.request(route.method, filled(route, part), version=last(route)), 404)


NO_SERVER_ID = ("x", "..", ".", "%20", "-1", "0", "1" * 200, "6C1F0F4E", "' OR 1=1 --", "%0d%0aSet-Cookie: a",
                "%F0%9F%98%80", f"{UUID}%0a", f" {UUID}", "%25s", "{0.__class__}")


@each(lambda route: route.path.startswith("/servers/{server_id}") and route.looks_first
      and route.method in ("GET", "DELETE"))
def test_server_id_that_is_none_is_404_without_a_look(alone: WholeApiClient, route: Route) -> None:
    for part in tried(NO_SERVER_ID, route):
        path = route.path.replace("{server_id}", part)
        with named(part):
            answer = alone.request(route.method, path.replace("{", "").replace("}", ""), version=last(route))
            assert_refused(answer, 404)


@pytest.fixture(scope="module")
def served() -> WholeApiClient:
    return WholeApiClient(token=ADMIN)


ANY_NAME = ("1" * 200, "9" * 19, "-1", "0", "1.5", "1e5", "%F0%9F%98%80", "%0a", "%E2%80%AE", "x" * 255,
            "' OR 1=1 --", "{0.__class__}", "%25s", "%C2%B2", "%D9%A1", "detail", UUID)


@each(lambda route: route.names and route.method in ("GET", "DELETE"))
def test_name_of_any_letters_is_looked_up_or_refused(served: WholeApiClient, route: Route) -> None:
    """What a name may be is each resource's own to say; none of them falls over one."""
    for part in ANY_NAME:
        answer = served.request(route.method, filled(route, part), version=last(route))
        with named(part):
            assert answer.status_int != 500, answer.text
            assert answer.headers[IDS[0]].startswith("req-")


@each(lambda route: route.method == "GET")
def test_unknown_method_is_a_plain_404(alone: WholeApiClient, route: Route) -> None:
    for method in ("PATCH", "TRACE", "OPTIONS", "HEAD", "BREW", "get", "PROPFIND"):
        answer = alone.request(method, filled(route), version=last(route))
        with named(method):
            assert answer.status_int == 404
            assert answer.headers["Content-Type"].startswith("text/plain")
            assert answer.headers[IDS[0]].startswith("req-")


@pytest.mark.parametrize("path", ["/%ff", "/%00", "/v3/%ed%a0%80", "/%F0%9F%98%80?a=b", "//v2.1/servers"])
def test_path_without_a_version_is_300_whatever_it_holds(alone: WholeApiClient, path: str) -> None:
    alone.prefix = ""
    try:
        answer = alone.get(path)
    finally:
        alone.prefix = "/v2.1"
    assert answer.status_int in (300, 404), answer.text
    assert answer.headers[IDS[0]].startswith("req-")
    assert answer.json


# queries

@each(lambda route: route.query is not None and not route.action)
def test_query_that_is_no_utf8_is_400(alone: WholeApiClient, route: Route) -> None:
    for query in ("limit=%FF", "%C3%28=1", "name=%ED%A0%80", "a=b&c=%80"):
        with named(query):
            assert_refused(alone.request(route.method, f"{filled(route)}?{query}", version=last(route)), 400)


@each(lambda route: route.query is not None and route.method == "GET")
def test_every_parameter_with_a_nul_is_400(alone: WholeApiClient, route: Route) -> None:
    for name in route.query.compiled(versions.number(last(route)))[0]:
        assert_refused(alone.get(f"{filled(route)}?{name}=a%00b", version=last(route)), 400)


@each(lambda route: route.query is not None and route.method == "GET" and route.query.refuse_unknown is not None)
def test_unknown_parameter_is_refused_by_name(alone: WholeApiClient, route: Route) -> None:
    if versions.number(last(route)) < versions.number(route.query.refuse_unknown):
        return
    for name in ("colour", "%F0%9F%98%80", "x" * 5000, "%00", "__class__", "limit[]"):
        assert_refused(alone.get(f"{filled(route)}?{name}=1", version=last(route)), 400)


# headers

@pytest.mark.parametrize("asked", ["2." + "9" * 5000, "9" * 5000, "2.1\u00b2", "2.\xb2", "", "compute", "2.1 2.2",
                                   "2.-1",
                                   "0x2.1", "2.1e1", " ", "2,1", "latest latest", "2.1\t", "%s", "\xff"])
def test_version_that_is_none_is_refused_or_means_2_1(asked: str) -> None:
    client = WholeApiClient(token=ADMIN)
    answers = [client.get("/flavors", headers={name: value}) for name, value in (
        (versions.HEADER, f"compute {asked}"), (versions.OLD_HEADER, asked), (versions.HEADER, asked))]
    for answer in answers:
        if answer.status_int == 200:
            assert answer.headers[versions.OLD_HEADER] == "2.1"
        else:
            assert_refused(answer, 400, 406)


def test_version_given_several_times_is_the_first_for_compute() -> None:
    client = WholeApiClient(token=ADMIN)
    answer = client.get("/flavors", headers={versions.HEADER: "compute 2.5, compute 2.7,volume 3.1"})
    assert answer.headers[versions.OLD_HEADER] == "2.5"
    assert_refused(client.get("/flavors", headers={versions.OLD_HEADER: "2.5, 2.7"}), 400)


@pytest.mark.parametrize("accept", ["application/xml", "text/html", "application/json;q=0", "a" * 5000, "\xff", "*"])
def test_other_answers_than_json_are_not_given(accept: str) -> None:
    answer = WholeApiClient(token=ADMIN).get("/flavors", headers={"Accept": accept})
    assert (answer.status_int, answer.headers["Content-Type"]) == (200, "application/json")


@pytest.mark.parametrize("token", ["", ":", ":x", "\xff:\xfe", "a" * 9000])
def test_token_of_any_shape_is_taken_or_401(token: str) -> None:
    answer = WholeApiClient(token=token).get("/flavors")
    assert answer.status_int in (200, 401)
    assert answer.headers[IDS[0]].startswith("req-")


def test_host_header_of_any_shape_ends_up_in_links_only() -> None:
    client = WholeApiClient(token=ADMIN)
    client.conductor.add_flavor("1")
    for host in ("evil.example", "a b", "\xff", "<script>", "x" * 5000):
        answer = client.get("/flavors/1", headers={"Host": host})
        assert answer.status_int in (200, 400)
        assert all("\n" not in value for value in answer.headers.values())

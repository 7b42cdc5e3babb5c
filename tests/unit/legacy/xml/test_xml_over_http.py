"""XML through the whole application: bodies, forms of answers, faults, and that /v2.1 has none of it."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from nova.api import app
from nova.legacy.api_extras import EXTRAS
from nova.legacy.xml.namespaces import COMMON, COMPUTE
from nova.legacy.xml.negotiation import COMPUTE_JSON, COMPUTE_XML, JSON, XML
from nova.web.routing import at_version
from tests.fakes.api import configuration
from tests.fakes.whole_api import WholeApiClient
from tests.unit.legacy.xml.client import XMLClient, tree

SERVER = f'<server xmlns="{COMPUTE}" name="one" flavorRef="1" imageRef="{{image}}" min_count="1"/>'


@pytest.fixture
def client() -> XMLClient:
    made = XMLClient()
    made.conductor.add_flavor("1")
    return made


@pytest.fixture
def server(client: XMLClient) -> str:
    return str(client.conductor.add_server(metadata={"k": "v"}).uuid)


def test_create_when_in_xml_then_answers_as_published(client: XMLClient) -> None:
    image = client.conductor.add_image()
    answer = client.say("POST", "/servers", SERVER.format(image=image.id))
    root = tree(answer)
    assert answer.status_int == 202 and answer.headers["Content-Type"] == XML
    assert root.tag == f"{{{COMPUTE}}}server" and {"id", "adminPass"} <= set(root.attrib)
    assert len(root.find(f"{{{COMPUTE}}}metadata")) == 0
    assert int(answer.headers["Content-Length"]) == len(answer.body)
    asked = client.conductor.calls[-1]
    assert "one" in repr(asked)


def test_create_when_a_reservation_is_asked_for_then_answers_with_it(client: XMLClient) -> None:
    image = client.conductor.add_image()
    body = SERVER.format(image=image.id).replace("min_count", 'return_reservation_id="True" min_count')
    root = tree(client.say("POST", "/servers", body))
    assert list(root.attrib) == ["reservation_id"] and len(root) == 0


@pytest.mark.parametrize(("kind", "accept", "answered"), [
    (XML, XML, XML), (XML, JSON, JSON), (XML, None, JSON), (JSON, XML, XML), (COMPUTE_XML, COMPUTE_XML, COMPUTE_XML),
    (COMPUTE_JSON, COMPUTE_JSON, COMPUTE_JSON), (f"{XML}; charset=latin-1", "*/*", JSON),
    ("Application/XML", XML, XML)])
def test_body_and_answer_then_are_each_in_its_own_form(client: XMLClient, server: str, kind: str, accept: str | None,
                                                       answered: str) -> None:
    bodies = {True: '{"metadata": {"a": "b"}}', False: '<metadata><meta key="a">b</meta></metadata>'}
    answer = client.say("POST", f"/servers/{server}/metadata", bodies["json" in kind], kind, accept)
    assert (answer.status_int, answer.headers["Content-Type"]) == (200, answered)
    shown = answer.json["metadata"] if "json" in answered else {one.get("key"): one.text for one in tree(answer)}
    assert shown["a"] == "b"


@pytest.mark.parametrize("kind", ["", "text/plain", "text/html", "application/x-www-form-urlencoded", "xml"])
@pytest.mark.parametrize("accept", [XML, JSON])
def test_body_when_of_another_type_then_is_400(client: XMLClient, server: str, kind: str, accept: str) -> None:
    answer = client.say("POST", f"/servers/{server}/metadata", "{}", kind, accept)
    assert answer.status_int == 400 and "Unsupported Content-Type" in answer.text


def test_body_when_empty_then_is_none_whatever_its_type(client: XMLClient, server: str) -> None:
    for kind in ("", "text/plain", XML):
        answer = client.say("POST", f"/servers/{server}/metadata", b"", kind)
        assert tree(answer).tag == f"{{{COMPUTE}}}badRequest" and "needs a body" in answer.text


@pytest.mark.parametrize("body", ["<server", "<!DOCTYPE a><a/>", "{}", "\0", "<a>" * 99])
def test_body_when_no_good_xml_then_is_a_fault_in_xml(client: XMLClient, body: str) -> None:
    answer = client.say("POST", "/servers", body)
    fault = tree(answer)
    assert answer.status_int == 400 and fault.tag == f"{{{COMPUTE}}}badRequest" and fault.get("code") == "400"
    [message] = fault
    assert message.tag == f"{{{COMPUTE}}}message" and message.text.startswith("Malformed request body")


def test_body_when_beyond_the_limit_then_is_413(client: XMLClient) -> None:
    assert client.say("POST", "/servers", b"<a>" + b" " * 114_688 + b"</a>").status_int == 413


@pytest.mark.parametrize("body", ["<os-stop/>", '<os-stop xmlns="urn:any/one"/>', "<os-stop> </os-stop>"])
def test_action_then_is_named_by_the_root(client: XMLClient, server: str, body: str) -> None:
    answer = client.say("POST", f"/servers/{server}/action", body)
    assert answer.status_int == 202, answer.text
    assert answer.body == b"" and answer.headers["Content-Type"] == XML


@pytest.mark.parametrize(("shows", "text"), [(True, "saved"), (False, None)])
def test_rescue_then_shows_the_password_where_the_deployment_does(shows: bool, text: str | None) -> None:
    client = XMLClient(conf=configuration(use_neutron=False, enable_instance_password=shows))
    server = client.conductor.add_server()
    root = tree(client.say("POST", f"/servers/{server.uuid}/action", '<rescue adminPass="saved"/>'))
    assert (root.tag, root.text) == ("adminPass", text)


def test_body_when_it_has_an_element_thousands_of_times_then_is_read_soon(client: XMLClient) -> None:
    began = time.process_time()
    answer = client.say("POST", "/os-keypairs", "<keypair>" + "<a/>" * 9_000 + "</keypair>")
    assert answer.status_int == 400 and time.process_time() - began < 2


def test_action_when_there_is_none_then_is_400(client: XMLClient, server: str) -> None:
    assert "dance" in tree(client.say("POST", f"/servers/{server}/action", "<dance/>"))[0].text


@pytest.mark.parametrize(("path", "status", "name"), [
    ("/servers/x", 404, "itemNotFound"), ("/os-cells", 410, "computeFault"), ("/servers?limit=x", 400, "badRequest"),
    ("/somebody/servers", 400, "badRequest"), ("/os-hypervisors/x", 404, "itemNotFound")])
def test_fault_then_is_named_by_its_status(client: XMLClient, path: str, status: int, name: str) -> None:
    path = path.replace("/somebody", "/0123456789abcdef0123456789abcdef")
    answer = client.ask(path)
    root = tree(answer)
    assert (answer.status_int, root.tag, root.get("code")) == (status, f"{{{COMPUTE}}}{name}", str(status))
    assert answer.headers["Content-Type"] == XML
    assert client.ask(path, JSON).json[name]["message"] == root[0].text
    assert client.ask(path, COMPUTE_XML).headers["Content-Type"] == COMPUTE_XML


def test_fault_when_unexpected_then_shows_nothing_but_the_request_id(client: XMLClient,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(client.conductor), "list_flavors", None)
    answer = client.ask("/flavors")
    root = tree(answer)
    assert answer.status_int == 500 and root.tag == f"{{{COMPUTE}}}computeFault"
    assert answer.headers["X-Openstack-Request-Id"] in root[0].text and "Traceback" not in answer.text


def test_fault_when_a_body_says_a_key_twice_then_is_400(client: XMLClient, server: str) -> None:
    body = "<reboot type='HARD'><type>SOFT</type></reboot>"
    assert "more than once" in tree(client.say("POST", f"/servers/{server}/action", body))[0].text


def test_authentication_when_it_fails_then_is_not_xml() -> None:
    answer = XMLClient(token=None).ask("/servers")
    assert answer.status_int == 401 and answer.content_type == "text/plain"


def test_suffix_then_chooses_the_form_and_is_no_part_of_the_path(client: XMLClient, server: str) -> None:
    assert tree(client.ask(f"/servers/{server}.xml", JSON)).get("id") == server
    assert client.ask(f"/servers/{server}.json", XML).json["server"]["id"] == server
    assert tree(client.ask("/admin/servers/detail.xml", None)).tag == f"{{{COMPUTE}}}servers"
    client.conductor.add_flavor("a.b")
    assert tree(client.ask("/flavors/a.b")).get("id") == "a.b"
    assert tree(client.ask("/flavors/a.b.xml", None)).get("id") == "a.b"


def test_page_when_it_is_full_then_its_link_is_in_the_root(client: XMLClient) -> None:
    client.conductor.add_flavor("2")
    [flavor, link] = tree(client.ask("/flavors.xml?limit=1"))
    assert flavor.get("id") == "1" and link.get("rel") == "next"
    assert link.get("href") == "http://localhost/v2/flavors?limit=1&marker=1"


@pytest.mark.parametrize("path", ["/v1.1", "/v2"])
def test_mount_when_it_is_the_older_one_then_is_the_same(client: XMLClient, path: str) -> None:
    client.prefix = path
    assert tree(client.ask("/flavors/1")).get("id") == "1"
    assert client.ask("/flavors/1", JSON).json["flavor"]["id"] == "1"


@pytest.mark.parametrize(("accept", "status", "kind"), [
    (f"{XML};version=2", 200, XML), (f"{JSON};version=2", 200, JSON), (f"{XML};version=2.1", 200, JSON),
    (f"{XML};version=1.1", 200, XML), (f"{XML};version=3", 300, XML), (XML, 300, XML)])
def test_version_when_a_parameter_then_picks_the_mount(client: XMLClient, accept: str, status: int, kind: str) -> None:
    client.prefix = ""
    answer = client.ask("/flavors/1", accept)
    assert (answer.status_int, answer.headers["Content-Type"]) == (status, kind)


def test_version_when_in_the_type_of_the_body_then_picks_the_mount(client: XMLClient, server: str) -> None:
    client.prefix = ""
    answer = client.say("POST", f"/servers/{server}/action", "<os-stop/>", f"{XML};version=2")
    assert answer.status_int == 202
    assert client.ask("/", f"{XML};version=2").text == client.ask("/v2/").text


@pytest.mark.parametrize("path", ["/flavors/1", "/flavors/nothing", "", "/"])
def test_v21_whatever_is_accepted_then_answers_in_json(client: XMLClient, path: str) -> None:
    client.prefix = "/v2.1"
    plain, asked = client.ask(path, None), client.ask(path)
    assert asked.headers["Content-Type"] == plain.headers["Content-Type"]
    assert asked.content_type == JSON and asked.json == plain.json


def test_v21_when_the_body_is_xml_then_is_415_in_json(client: XMLClient, server: str) -> None:
    client.prefix = "/v2.1"
    answer = client.say("POST", f"/servers/{server}/action", "<os-stop/>")
    assert answer.status_int == 415 and "badMediaType" in answer.json
    assert client.ask("/flavors/1.xml").status_int == 404


def test_extensions_then_have_their_own_namespaces(client: XMLClient) -> None:
    root = tree(client.ask("/extensions"))
    shown = {one.get("alias"): one for one in root}
    assert root.tag == f"{{{COMMON}}}extensions"
    assert shown["NMN"].get("namespace") == "http://docs.openstack.org/compute/ext/multinic/api/v1.1"
    assert shown["NMN"].get("updated") == "2011-06-09T00:00:00Z"
    assert client.ask("/extensions", JSON).json["extensions"][0]["namespace"].endswith("fake_xml")
    assert tree(client.ask("/extensions/NMN")).get("namespace") == shown["NMN"].get("namespace")


def test_scheduler_hints_when_in_another_namespace_then_are_not_looked_at(client: XMLClient) -> None:
    image, right = client.conductor.add_image().id, "http://docs.openstack.org/compute/ext/scheduler-hints/api/v2"
    for namespace, status in ((right, 400), ("http://docs.openstack.org/other", 202)):
        hints = f'<h:scheduler_hints xmlns:h="{namespace}"><h:group>no uuid</h:group></h:scheduler_hints>'
        body = SERVER.format(image=image).replace("/>", f">{hints}</server>")
        answer = client.say("POST", "/servers", body)
        assert answer.status_int == status, answer.text


# white space

BY_HAND = """<security_group xmlns="http://docs.openstack.org/compute/api/v1.1" name="test">
    <description>
        description
    </description>
</security_group>"""


def test_security_group_when_its_description_stands_between_line_breaks_then_is_made(client: XMLClient) -> None:
    answer = client.say("POST", "/os-security-groups", BY_HAND)
    assert answer.status_int == 200, answer.text
    assert [one.text for one in tree(answer).iter() if one.tag.endswith("}description")] == ["description"]


# every operation that reads

NAIVE = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d(?:\.\d+)?)$")


def texts(value: Any) -> list[str]:
    """The plain values of JSON, as Python spells them."""
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner)]
    return [str(value)]


def values_in(root: Any) -> list[str]:
    return [value for one in root.iter() for value in (*one.attrib.values(), one.text or "")]


def test_answer_whatever_is_read_then_says_in_xml_what_json_says(client: XMLClient, server: str) -> None:
    client.conductor.add_image()
    client.conductor.add_migration(server_uuid=server)
    named = {"server_id": server, "flavor_id": "1", "image_id": next(iter(client.conductor.images)), "key": "k",
             "tenant_id": "demo", "quota_class": "default", "alias": "NMN", "host_name": "host1"}
    rows = at_version([row for row in app.table("nova-network", EXTRAS) if row.method == "GET"], 1)
    seen = []
    for row in rows:
        path = row.path.format(**{name: named.get(name, "1") for name in row.names})
        in_json, in_xml = client.ask(path, JSON), client.ask(path)
        assert in_xml.status_int == in_json.status_int, path
        if in_json.status_int == 200:
            said = values_in(tree(in_xml))
            assert not any(NAIVE.fullmatch(text) for text in said), path
            missing = [text for text in texts(in_json.json) if NAIVE.sub(r"\1 \2", text).removesuffix(".000000")
                       not in said and "fake_xml" not in text and text != "2014-12-03T00:00:00Z"]
            assert missing == [], path
            seen.append(row.id)
    assert len(seen) > 40, seen


def test_plain_json_below_v2_then_is_byte_by_byte_as_below_v21(client: XMLClient) -> None:
    below = WholeApiClient(client.conductor, token=client.token)
    assert client.ask("/flavors/1", JSON).body.replace(b"/v2/", b"/v2.1/") == below.get("/flavors/1").body

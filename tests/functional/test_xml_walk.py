"""A whole cloud by a client that speaks XML alone: below /v2, from a key pair to the end of a server."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
import requests
from lxml import etree

from nova.legacy.xml.namespaces import ATOM, COMPUTE, EXTENSIONS
from tests.functional.backends import wait_until
from tests.functional.client import IMAGE
from tests.functional.cloud import Cloud, Plan
from tests.unit.legacy.xml import samples

XML = "application/xml"
STATES = EXTENSIONS["OS-EXT-STS"].namespace
HINTS = EXTENSIONS["OS-SCH-HNT"].namespace


class XMLUser:
    """Sends and gets elements. What is no success raises."""

    def __init__(self, cloud: Cloud, user: str) -> None:
        self.url = cloud.url.replace("/v2.1", "/v2")
        self.session = requests.Session()
        self.session.headers.update({"X-Auth-Token": f"{user}:demo", "Accept": XML, "Content-Type": XML})

    def call(self, method: str, path: str, body: str = "", status: int | None = None) -> Any:
        answer = self.session.request(method, self.url + path, data=body.encode(), timeout=60)
        assert answer.status_code == status if status else answer.ok, (method, path, answer.status_code, answer.text)
        if not answer.content:
            return None
        assert answer.headers["Content-Type"] == XML
        return etree.fromstring(answer.content)

    def get(self, path: str, status: int | None = None) -> Any:
        return self.call("GET", path, status=status)

    def act(self, server: str, body: str) -> Any:
        return self.call("POST", f"/servers/{server}/action", body)

    def settled(self, server: str, status: str) -> Any:
        """The server's element, once it has the status and no task runs."""
        def look() -> Any:
            root = self.get(f"/servers/{server}")
            assert root.get("status") != "ERROR", etree.tostring(root)
            return root if (root.get("status"), root.get(f"{{{STATES}}}task_state")) == (status, "None") else None
        return wait_until(f"{server} is {status}", look, 30, 0.1)

    def gone(self, server: str) -> None:
        wait_until(f"{server} is gone", lambda: server not in {one.get("id") for one in self.get("/servers")}, 30, 0.1)


def local(element: Any) -> str:
    return str(etree.QName(element).localname)


def fields(element: Any) -> dict[str, str | None]:
    return {local(child): child.text for child in element}


def assert_published(root: Any, published: str) -> None:
    """It has all names of the published answer, where that is at hand."""
    path = samples.FOLDER / f"{published}.xml"
    if path.is_file():
        assert samples.names(samples.parsed(path.read_bytes())) - samples.names(root) == set()


@pytest.fixture(scope="module")
def cloud(make_cloud: Callable[[Plan], Cloud]) -> Cloud:
    made = make_cloud(Plan(whole=True, computes=2, options={"DEFAULT": {"shelved_offload_time": 0}}))
    made.start()
    return made


@pytest.fixture(scope="module")
def demo(cloud: Cloud) -> XMLUser:
    return XMLUser(cloud, "demo")


@pytest.fixture(scope="module")
def admin(cloud: Cloud) -> XMLUser:
    return XMLUser(cloud, "admin")


def test_server_when_only_xml_is_spoken_then_lives_its_whole_life(demo: XMLUser) -> None:
    key = demo.call("POST", "/os-keypairs", "<keypair><name>mine</name></keypair>")
    assert fields(key)["name"] == "mine" and "PRIVATE KEY" in str(fields(key)["private_key"])
    banner = base64.encodebytes(b"welcome " * 20).decode()
    made = demo.call("POST", "/servers", f"""
        <server xmlns="{COMPUTE}" name="walker &amp; son" imageRef="http://glance.example/images/{IMAGE}" flavorRef="1"
                key_name="mine" config_drive="True" min_count="1" max_count="1">
          <metadata><meta key="a b">&lt;c&gt;</meta></metadata>
          <personality><file path="/etc/banner">{banner}</file></personality>
          <security_groups><security_group name="default"/></security_groups>
          <user_data>{base64.b64encode(b"#!/bin/sh").decode()}</user_data>
          <hints:scheduler_hints xmlns:hints="{HINTS}"/>
        </server>""", status=202)
    server = made.get("id")
    assert made.get("adminPass")
    shown = demo.settled(server, "ACTIVE")
    assert (shown.get("name"), shown.get("key_name"), shown.get("config_drive")) == ("walker & son", "mine", "True")
    [meta] = shown.find(f"{{{COMPUTE}}}metadata")
    assert (meta.get("key"), meta.text) == ("a b", "<c>")
    assert shown.find(f"{{{COMPUTE}}}addresses/{{{COMPUTE}}}network/{{{COMPUTE}}}ip").get("version") == "4"
    assert [link.get("rel") for link in shown.findall(f"{{{ATOM}}}link")] == ["self", "bookmark"]
    assert [one.get("id") for one in demo.get("/servers/detail.xml")] == [server]

    demo.call("PUT", f"/servers/{server}/metadata/k", f'<meta xmlns="{COMPUTE}" key="k">v</meta>')
    assert demo.get(f"/servers/{server}/metadata/k").text == "v"
    assert demo.call("PUT", f"/servers/{server}", '<server name="renamed"/>').get("name") == "renamed"

    for body, status in (("<os-stop/>", "SHUTOFF"), ("<os-start/>", "ACTIVE"), ('<reboot type="HARD"/>', "ACTIVE"),
                         ("<pause/>", "PAUSED"), ("<unpause/>", "ACTIVE")):
        demo.act(server, body)
        demo.settled(server, status)
    password = demo.act(server, '<rescue adminPass="saved"/>')
    assert (password.tag, password.text) == ("adminPass", "saved")
    demo.settled(server, "RESCUE")
    demo.act(server, "<unrescue/>")
    demo.settled(server, "ACTIVE")
    rebuilt = demo.act(server, f'<rebuild imageRef="{IMAGE}" name="again" preserve_ephemeral="false"/>')
    assert rebuilt.get("name") == "again" and rebuilt.get("adminPass")
    demo.settled(server, "ACTIVE")
    output = demo.act(server, '<os-getConsoleOutput length="5"/>')
    assert output.tag == "output" and output.text
    actions = [one.get("action") for one in demo.get(f"/servers/{server}/os-instance-actions")]
    assert {"create", "stop", "start", "rebuild"} <= set(actions)

    fault = demo.call("POST", f"/servers/{server}/action", "<unpause/>", status=409)
    assert fault.tag == f"{{{COMPUTE}}}conflictingRequest" and fault.get("code") == "409"
    usage = demo.get("/os-simple-tenant-usage/demo?start=2020-01-01T00:00:00&detailed=1")
    assert fields(usage.find("server_usages/server_usage"))["instance_id"] == server
    assert_published(usage, "os-simple-tenant-usage/simple-tenant-usage-get-specific")
    demo.call("DELETE", f"/servers/{server}", status=204)
    demo.gone(server)
    assert demo.get(f"/servers/{server}", status=404).tag == f"{{{COMPUTE}}}itemNotFound"


def test_project_when_only_xml_is_spoken_then_has_its_groups_limits_and_addresses(demo: XMLUser) -> None:
    group = demo.call("POST", "/os-security-groups",
                      '<security_group name="web"><description>w</description></security_group>')
    rule = demo.call("POST", "/os-security-group-rules", f"""
        <security_group_rule><parent_group_id>{group.get("id")}</parent_group_id><ip_protocol>tcp</ip_protocol>
        <from_port>80</from_port><to_port>80</to_port><cidr>0.0.0.0/0</cidr></security_group_rule>""")
    assert rule.get("parent_group_id") == group.get("id")
    [shown] = demo.get(f"/os-security-groups/{group.get('id')}").find(f"{{{COMPUTE}}}rules")
    assert fields(shown) | {"group": None, "ip_range": None} == {
        "ip_protocol": "tcp", "from_port": "80", "to_port": "80", "group": None, "ip_range": None}
    made = demo.call("POST", "/os-server-groups", '<server_group name="far"><policies><policy>anti-affinity</policy>'
                                                  "</policies></server_group>")
    assert made.find(f"{{{COMPUTE}}}policies")[0].text == "anti-affinity"
    limits = {one.get("name"): one.get("value") for one in demo.get("/limits")[1]}
    assert limits["maxTotalInstances"] == "-1" and int(limits["totalSecurityGroupsUsed"]) == 2
    assert [one.get("name") for one in demo.get("/flavors/detail")] == ["m1.tiny"]
    assert [one.get("name") for one in demo.get("/images")] == ["tiny"]


def test_administrator_when_only_xml_is_spoken_then_rules_the_cloud(admin: XMLUser) -> None:
    admin.call("POST", "/flavors", f"""
        <flavor xmlns="{COMPUTE}" xmlns:e="{EXTENSIONS['OS-FLV-EXT-DATA'].namespace}" name="big" ram="1024" vcpus="2"
                disk="2" id="big" swap="64" rxtx_factor="2.0" e:ephemeral="1"/>""")
    admin.call("POST", "/flavors/big/os-extra_specs",
               '<extra_specs><hw:cpu_policy xmlns:hw="hw">shared</hw:cpu_policy><own>1</own></extra_specs>')
    assert {one.tag: one.text for one in admin.get("/flavors/big/os-extra_specs")} == {
        "{hw}cpu_policy": "shared", "own": "1"}
    spec = admin.get("/flavors/big/os-extra_specs/hw:cpu_policy")
    assert (spec.tag, spec.get("key"), spec.text) == ("extra_spec", "hw:cpu_policy", "shared")
    shown = admin.get("/flavors/big")
    assert (shown.get("swap"), shown.get("rxtx_factor")) == ("64", "2.0")

    made = fields(admin.call("POST", "/os-aggregates", '<aggregate name="fast" availability_zone="east"/>'))
    assert (made["name"], made["deleted"], made["updated_at"]) == ("fast", "False", "None")
    path = f"/os-aggregates/{made['id']}"
    admin.call("POST", f"{path}/action", '<add_host host="host1"/>')
    admin.call("POST", f"{path}/action", "<set_metadata><metadata><ssd>true</ssd></metadata></set_metadata>")
    aggregate = admin.get(path)
    assert [one.text for one in aggregate.find("hosts")] == ["host1"]
    assert fields(aggregate.find("metadata")) == {"availability_zone": "east", "ssd": "true"}

    quotas = admin.call("PUT", "/os-quota-sets/demo",
                        '<quota_set id="demo"><cores>50</cores><force>True</force></quota_set>')
    assert fields(quotas)["cores"] == "50"
    assert {one.get("hypervisor_hostname") for one in admin.get("/os-hypervisors")} == {"host1", "host2"}
    disabled = admin.call("PUT", "/os-services/disable", '<service host="host2" binary="nova-compute"/>')
    assert disabled.get("status") == "disabled"
    admin.call("PUT", "/os-services/enable", '<service host="host2" binary="nova-compute"/>')
    assert {one.get("status") for one in admin.get("/os-services")} == {"enabled"}
    assert "host1" in {one.get("host_name") for one in admin.get("/os-hosts")}
    for path in ("/os-availability-zone/detail", "/os-networks", "/os-simple-tenant-usage?detailed=1", "/os-migrations",
                 "/extensions", "/os-floating-ips", "/os-hypervisors/detail"):
        assert admin.get(path) is not None
    admin.call("POST", f"/os-aggregates/{made['id']}/action", '<remove_host host="host1"/>')
    admin.call("DELETE", f"/os-aggregates/{made['id']}")


#: Path, and the published answer that has the same names; what it has not is of extensions that came beside it.
FORMS = [("/os-hypervisors", "os-hypervisors/hypervisors-list-resp"),
         ("/os-hypervisors/detail", "os-hypervisors/hypervisors-detail-resp"),
         ("/os-hypervisors/host/servers", "os-hypervisors/hypervisors-servers-resp"),
         ("/os-services", "os-extended-services-delete/services-get-resp"),
         ("/os-hosts", "os-hosts/hosts-list-resp"), ("/os-hosts/host1", "os-hosts/host-get-resp"),
         ("/os-networks", "os-extended-networks/networks-list-resp"),
         ("/os-quota-sets/demo", "os-server-group-quotas/quotas-show-get-resp"),
         ("/os-instance_usage_audit_log", "os-instance_usage_audit_log/inst-usage-audit-log-index-get-resp")]


@samples.needs_samples
@pytest.mark.parametrize(("path", "published"), FORMS)
def test_answer_of_a_real_cloud_then_has_the_form_of_the_published_one(admin: XMLUser, path: str,
                                                                      published: str) -> None:
    assert_published(admin.get(path), published)

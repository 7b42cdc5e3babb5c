"""Every published document: answers are written as they stand there, requests read as what handlers take."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.api import app, versions
from nova.api.routing import Route
from nova.legacy.api_extras import EXTRAS
from nova.legacy.xml import reader, requests
from nova.legacy.xml.answers import ROOTS, Laid
from nova.legacy.xml.core_roots import CREATED, DIAGNOSTICS, ONE_NETWORK, RESERVED
from nova.legacy.xml.extension_roots import ALL_PINGED, EXTRA_SPEC, HOST_POWER, HOST_RESOURCES, PINGED
from nova.legacy.xml.layouts import GENERIC, Listing, Pairs, Root
from nova.legacy.xml.writer import document, write
from tests.unit.legacy.xml import samples

pytestmark = samples.needs_samples

#: Answers whose root is laid out by their operation, by the file's name.
OF_OPERATIONS: dict[str, Root] = {
    "server-post-resp": CREATED, "scheduler-hints-post-resp": CREATED, "userdata-post-resp": CREATED,
    "multiple-create-post-resp": RESERVED, "server-ips-network-resp": ONE_NETWORK,
    "server-diagnostics-get-resp": DIAGNOSTICS, "flavor-extra-specs-get-resp": EXTRA_SPEC,
    "flavor-extra-specs-update-resp": EXTRA_SPEC, "host-get-resp": HOST_RESOURCES, "host-get-reboot": HOST_POWER,
    "host-get-shutdown": HOST_POWER, "host-get-startup": HOST_POWER, "host-put-maintenance-resp": HOST_POWER,
    "fping-get-resp": ALL_PINGED, "fping-get-details-resp": PINGED}
#: Not as the others of their root: a form that was never sent with the one beside it, and a document in a wrong file.
ODD = ("os-attach-interfaces/attach-interfaces-list.xml", "OS-EXT-AZ/server-post-req.xml")
#: No answers: bodies of actions, in files that the table of layouts counts among answers.
ACTIONS = ("os-server-start-stop/server_start_stop.xml", "os-shelve/os-shelve.xml")


def answers() -> list[Path]:
    return [path for path in samples.documents(requests=False) if samples.name_of(path) not in (*ODD, *ACTIONS)]


@pytest.mark.parametrize("path", answers(), ids=samples.name_of)
def test_published_answer_when_written_from_its_values_then_has_the_same_form(path: Path) -> None:
    sample = samples.parsed(path.read_bytes())
    tag = samples.local(sample)
    root = OF_OPERATIONS.get(path.stem) or ROOTS.get(tag) or Root(GENERIC)
    flat = isinstance(root.layout, (Listing, Pairs)) and root.layout.flat
    value: Any = dict([samples.pair(sample, root.layout)]) if flat else samples.value_of(sample, root.layout)
    made = samples.parsed(document(Laid(tag, root, value)))
    assert samples.shape(made) == samples.shape(sample)
    assert {*sample.nsmap.values()} - {*made.nsmap.values()} <= samples.UNUSED


BLANK_TIME = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)")
#: Of periods, which JSON has with a blank, too.
PERIODS = ("os-instance_usage_audit_log",)


def in_json(value: Any) -> Any:
    """With each time as JSON has it."""
    if isinstance(value, dict):
        return {key: in_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [in_json(inner) for inner in value]
    return BLANK_TIME.sub(r"\1T\2", value) if isinstance(value, str) else value


@pytest.mark.parametrize("path", [path for path in answers() if BLANK_TIME.search(path.read_text())
                                  and path.parent.name not in PERIODS], ids=samples.name_of)
def test_published_time_when_written_from_its_form_in_json_then_is_spelled_the_same(path: Path) -> None:
    sample = samples.parsed(path.read_bytes())
    tag = samples.local(sample)
    root = OF_OPERATIONS.get(path.stem) or ROOTS.get(tag) or Root(GENERIC)
    made = document(Laid(tag, root, in_json(samples.value_of(sample, root.layout)))).decode()
    assert sorted(BLANK_TIME.findall(made)) == sorted(BLANK_TIME.findall(path.read_text()))


#: Layouts that put together what never stands in one document: of a host, of pings, and an answer that is none.
MIXED = ("os-hosts/host", "os-fping/server", "os-attach-interfaces/interfaceAttachments")
OF_LAYOUTS = {"extra_spec": EXTRA_SPEC, "diagnostics": DIAGNOSTICS, "os-fping/servers": ALL_PINGED,
              "core/network": ONE_NETWORK}


def layouts() -> list[Any]:
    """Each layout of an answer, also of those that no published document has."""
    return [pytest.param(f"{folder}/{tag}", tag, entry, id=f"{folder}/{tag}")
            for folder, parts in samples.layouts().items() for tag, entry in parts.get("response", {}).items()
            if f"{folder}/{tag}" not in MIXED]


@pytest.mark.parametrize(("name", "tag", "entry"), layouts())
def test_layout_when_written_from_its_values_then_has_the_same_form(name: str, tag: str, entry: dict[str, Any]) -> None:
    sample = samples.made_up(tag, entry)
    root = OF_LAYOUTS.get(name) or OF_LAYOUTS.get(tag) or ROOTS.get(tag) or Root(GENERIC)
    flat = isinstance(root.layout, (Listing, Pairs)) and root.layout.flat
    value: Any = dict([samples.pair(sample, root.layout)]) if flat else samples.value_of(sample, root.layout)
    made = samples.parsed(document(Laid(tag, root, value)))
    assert samples.shape(made) == samples.shape(sample)


#: Published in JSON, too, below the same file name; but four say something else there: one extension, no rate limits
#: and other extra specs, and tenants without servers.
OTHERS = ("extensions-get-resp", "limit-get-resp", "flavor-extra-specs-list-resp")
OF_TWINS = {
    "server-post-resp": "POST /servers", "multiple-create-post-resp": "POST /servers",
    "server-ips-network-resp": "GET /servers/{server_id}/ips/{network_label}",
    "server-diagnostics-get-resp": "GET /servers/{server_id}/diagnostics",
    "flavor-extra-specs-get-resp": "GET /flavors/{flavor_id}/os-extra_specs/{key}",
    "flavor-extra-specs-update-resp": "PUT /flavors/{flavor_id}/os-extra_specs/{key}",
    "host-get-resp": "GET /os-hosts/{host_name}", "host-put-maintenance-resp": "PUT /os-hosts/{host_name}",
    "host-get-reboot": "GET /os-hosts/{host_name}/reboot", "host-get-shutdown": "GET /os-hosts/{host_name}/shutdown",
    "host-get-startup": "GET /os-hosts/{host_name}/startup", "fping-get-resp": "GET /os-fping",
    "fping-get-details-resp": "GET /os-fping/{server_id}"}


def twins() -> list[tuple[Path, Path]]:
    """(document in XML, the first one in JSON of the same name and of the first version)."""
    in_json: dict[str, Path] = {}
    for path in sorted((samples.SHARED / "samples").rglob("*.json")):
        if not path.parent.name.startswith("v2."):
            in_json.setdefault(path.stem, path)
    return [(path, in_json[path.stem]) for path in answers() if path.stem in in_json and path.stem not in OTHERS]


@pytest.mark.parametrize(("in_xml", "in_json"), twins(), ids=lambda path: path.stem)
def test_published_answer_when_written_from_its_json_then_has_all_that_xml_has(in_xml: Path, in_json: Path) -> None:
    made = samples.parsed(write(json.loads(in_json.read_text()), OF_TWINS.get(in_xml.stem)))
    assert samples.names(made) >= samples.names(samples.parsed(in_xml.read_bytes()))


#: Operations of request bodies, by the name of the root; ``POST /servers/{server_id}/action`` has the rest.
OPERATIONS = {
    "server": "POST /servers", "meta": "PUT /servers/{server_id}/metadata/{key}",
    "metadata": "POST /servers/{server_id}/metadata", "flavor": "POST /flavors",
    "aggregate": "POST /os-aggregates", "snapshot": "POST /os-assisted-volume-snapshots",
    "interfaceAttachment": "POST /servers/{server_id}/os-interface",
    "configure_project": "PUT /os-cloudpipe/{id}", "network": "POST /os-networks",
    "quota_set": "PUT /os-quota-sets/{tenant_id}", "quota_class_set": "PUT /os-quota-class-sets/{quota_class}",
    "extra_specs": "POST /flavors/{flavor_id}/os-extra_specs", "key1": "PUT /flavors/{flavor_id}/os-extra_specs/{key}",
    "dns_entry": "PUT /os-floating-ip-dns/{domain}/entries/{name}", "keypair": "POST /os-keypairs",
    "id": "POST /os-networks/add", "events": "POST /os-server-external-events",
    "security_group_default_rule": "POST /os-security-group-default-rules", "server_group": "POST /os-server-groups",
    "service": "PUT /os-services/{service_id}", "volume": "POST /os-volumes", "pool": "POST /os-floating-ips",
    "volumeAttachment": "POST /servers/{server_id}/os-volume_attachments", "node": "POST /os-baremetal-nodes"}
OF_FILES = {"server-update-put-req": "PUT /servers/{server_id}"}
ACTION_PATHS = ("/servers/{server_id}/action", "/os-aggregates/{aggregate_id}/action", "/flavors/{flavor_id}/action",
                "/os-networks/{network_id}/action", "/os-baremetal-nodes/{node_id}/action")
NO_EVENT = ("os-server-external-events/event-create-req.xml",)  # it names one that there is not
GONE = ("agent", "para", "resetNetwork")  # 410 whatever the body is


def bodies() -> list[Path]:
    found = [path for path in samples.documents(requests=True) if samples.name_of(path) not in ODD]
    return [*found, *(samples.FOLDER / name for name in ACTIONS if found)]


def route(path: Path, tag: str) -> Route:
    rows = {row.id: row for row in app.table("nova-network", EXTRAS) if row.until is None or row.until != "2.0"}
    names = (OF_FILES.get(path.stem), OPERATIONS.get(tag), *(f"POST {one}#{tag}" for one in ACTION_PATHS))
    return next(rows[name] for name in names if name in rows)


@pytest.mark.parametrize("path", bodies(), ids=samples.name_of)
def test_published_request_when_read_then_handlers_take_it(path: Path) -> None:
    root = reader.read(path.read_bytes())
    tag = requests.local(root.tag)
    if tag in GONE:
        assert requests.body_of(root, None)
        return
    row = route(path, tag)
    assert row.body is not None
    made = requests.body_of(root, row.body.compiled(versions.LEGACY, True))
    if samples.name_of(path) in NO_EVENT:
        with pytest.raises(errors.Invalid, match="test-event"):
            row.body.check(made, versions.LEGACY, True)
        return
    checked = row.body.check(made, versions.LEGACY, True)
    assert checked == EXACT.get(samples.name_of(path), checked)
    assert said(made) >= said_in(samples.parsed(path.read_bytes()))


def said(value: Any) -> set[str]:
    """All keys and plain values, as text without blanks."""
    if isinstance(value, dict):
        return {text for key, inner in value.items() for text in (*said(inner), "".join(key.split()))}
    if isinstance(value, list):
        return {text for inner in value for text in said(inner)}
    return {"".join(str(value).split())}


def said_in(element: Any) -> set[str]:
    """The values of attributes and of texts without blanks, and ids for addresses of things."""
    texts = [value for one in element.iter() for value in (*one.attrib.values(), "" if len(one) else one.text or "")]
    return {"".join((text.rpartition("/")[2] if text.startswith("http://openstack") else text).split())
            for text in texts if text}


EXACT: dict[str, Any] = {
    "OS-DCF/server-update-put-req.xml": {"server": {"OS-DCF:diskConfig": "AUTO"}},
    "os-server-groups/server-groups-post-req.xml": {"server_group": {"name": "test", "policies": ["anti-affinity"]}},
    "os-services/service-disable-log-put-req.xml": {"host": "host1", "binary": "nova-compute",
                                                    "disabled_reason": "test2"},
    "os-quota-sets/quotas-update-post-req.xml": {"quota_set": {"security_groups": 45}},
    "os-extended-quotas/quotas-update-post-req.xml": {"quota_set": {"instances": 45, "force": True}},
    "os-networks/network-add-req.xml": {"id": "1"},
    "os-aggregates/aggregate-metadata-post-req.xml": {"set_metadata": {"metadata": {"key": "value"}}},
    "image-metadata-put-req.xml": {"metadata": {"auto_disk_config": "True", "Label": "Changed"}},
    "os-flavor-extra-specs/flavor-extra-specs-update-req.xml": {"key1": "new_value1"},
    "os-admin-actions/admin-actions-pause.xml": {"pause": None},
    "os-admin-actions/admin-actions-live-migrate.xml": {"os-migrateLive": {
        "host": "6217bf142bb3491995f966af999f9f23", "block_migration": False, "disk_over_commit": False}},
    "os-evacuate/server-evacuate-req.xml": {"evacuate": {
        "host": "TargetHost", "adminPass": "MySecretPass", "onSharedStorage": True}},
    "os-flavor-access/flavor-access-create-req.xml": {"flavor": {
        "name": "test_flavor", "ram": 1024, "vcpus": 2, "disk": 10, "id": "10", "os-flavor-access:is_public": False}},
    "os-networks-associate/network-associate-host-req.xml": {"associate_host": "testHost"},
    "os-networks-associate/network-disassociate-host-req.xml": {"disassociate_host": None},
}

"""Published requests and answers of what only nova-network has: requests pass, answers have the same form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nova.api import legacy_networks, versions
from nova.api.routing import Route
from nova.legacy.api_extras import EXTRAS
from nova.model.network.networks import FixedAddressRow
from tests.contract import rows
from tests.fakes.api import ADMIN, configuration
from tests.fakes.conductor_networks import PORT
from tests.fakes.whole_api import WholeApiClient

pytestmark = rows.needs_contract
SAMPLES = rows.SHARED / "samples"

REQUESTS = [
    ("os-networks/network-create-req.json", "POST /os-networks"),
    ("os-networks/network-add-req.json", "POST /os-networks/add"),
    ("os-networks-associate/network-associate-host-req.json", "POST /os-networks/{network_id}/action#associate_host"),
    ("os-networks-associate/network-disassociate-req.json", "POST /os-networks/{network_id}/action#disassociate"),
    ("os-tenant-networks/networks-post-req.json", "POST /os-tenant-networks"),
    ("os-fixed-ips/fixedip-post-req.json", "POST /os-fixed-ips/{fixed_ip}/action#reserve"),
    ("os-fixed-ips/v2.4/fixedip-post-req.json", "POST /os-fixed-ips/{fixed_ip}/action#reserve"),
]


def sample(name: str) -> Any:
    return json.loads((SAMPLES / name).read_text())


def route(id: str) -> Route:
    [found] = [one for one in (*legacy_networks.ROUTES, *EXTRAS.networks) if one.id == id]
    return found


@pytest.mark.parametrize(("name", "id"), REQUESTS)
def test_published_request_passes_at_every_version_of_its_operation(name: str, id: str) -> None:
    row = route(id)
    assert row.body is not None
    for version in range(1, versions.number(str(row.until)) + 1):
        row.body.check(sample(name), version)
    row.body.check(sample(name), versions.LEGACY, True)


def test_published_answers_have_the_keys_of_ours() -> None:
    client = WholeApiClient(conf=configuration(use_neutron=False), token=ADMIN, version="2.35")
    client.conductor.fixed_rows["192.168.1.1"] = FixedAddressRow(address="192.168.1.1", network_uuid="n")
    server = client.conductor.add_server(interfaces=(PORT,))
    made = client.post("/os-tenant-networks", sample("os-tenant-networks/networks-post-req.json"))
    virtual = f"/servers/{server.uuid}/os-virtual-interfaces"
    for name, version, answer in (
            ("os-tenant-networks/networks-post-res.json", "2.1", made),
            ("os-fixed-ips/fixedips-get-resp.json", "2.1", client.get("/os-fixed-ips/192.168.1.1", version="2.1")),
            ("os-fixed-ips/v2.4/fixedips-get-resp.json", "2.4", client.get("/os-fixed-ips/192.168.1.1", version="2.4")),
            ("os-virtual-interfaces/v2.12/vifs-list-resp.json", "2.12", client.get(virtual, version="2.12"))):
        assert keys_of(answer.json) == keys_of(sample(name)), (name, version)


def keys_of(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: keys_of(one) for name, one in value.items()}
    return [keys_of(one) for one in value] if isinstance(value, list) else None

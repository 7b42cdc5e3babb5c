"""Reads of the compute API that another service answers, while that service does not answer."""

from __future__ import annotations

import uuid

import pytest

from nova import errors
from tests.fakes.api import ADMIN, ApiClient

ID = str(uuid.UUID(int=1))
#: Call of the conductor -> reads that it answers.
PASSED_ON = {
    "list_networks": ("/os-networks", "/os-tenant-networks"), "get_network": (f"/os-networks/{ID}",),
    "list_images": ("/images", "/images/detail"), "get_image": (f"/images/{ID}", f"/images/{ID}/metadata"),
    "list_security_groups": ("/os-security-groups",), "get_security_group": (f"/os-security-groups/{ID}",),
    "list_server_security_groups": ("/servers/SERVER/os-security-groups",),
    "list_interfaces": ("/servers/SERVER/os-interface",),
    "list_floating_addresses": ("/os-floating-ips",), "list_floating_pools": ("/os-floating-ip-pools",),
    "get_floating_address": (f"/os-floating-ips/{ID}",),
    "list_volumes": ("/os-volumes", "/os-volumes/detail"), "get_volume": (f"/os-volumes/{ID}",),
    "list_volume_snapshots": ("/os-snapshots", "/os-snapshots/detail"), "get_volume_snapshot": (f"/os-snapshots/{ID}",),
}


@pytest.mark.parametrize("call", PASSED_ON)
def test_read_when_the_service_behind_it_does_not_answer_then_it_is_503_and_says_which(call: str) -> None:
    made = ApiClient(token=ADMIN, version="2.1")
    server = made.conductor.add_server().uuid
    made.conductor.given(**{call: errors.service.Unavailable(service="network", reason="timeout")})
    for path in PASSED_ON[call]:
        answer = made.get(path.replace("SERVER", server))
        [fault] = answer.json.values()
        assert answer.status_code == 503 and "network service" in fault["message"], path

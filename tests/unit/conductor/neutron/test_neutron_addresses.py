"""One more address of a server's port of Neutron's, or one less (multinic)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nova import context, errors
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO, NEUTRON


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates, NEUTRON)
    yield made
    made.close()


def ask(cloud: FailingCloud, call: str, uuid: str, argument: str) -> None:
    with context.entered(DEMO):
        getattr(cloud.control, call)(uuid, argument)


def addresses(cloud: FailingCloud, uuid: str) -> list[str]:
    """As the server's row and its port have them, alike."""
    [interface], [port] = cloud.server(uuid).interfaces, cloud.neutron.of(uuid)
    shown = [one.address for one in interface.addresses]
    assert sorted(shown) == sorted(one["ip_address"] for one in port["fixed_ips"])
    return shown


def test_address_when_it_is_added_and_removed_then_port_and_row_have_it_and_not_the_rest_changed(cloud):
    [uuid] = cloud.active()
    before = addresses(cloud, uuid)
    ask(cloud, "add_fixed_address", uuid, cloud.net)
    after = addresses(cloud, uuid)
    [added] = set(after) - set(before)
    assert len(after) == len(before) + 1 and added.startswith("10.1.0.")
    ask(cloud, "remove_fixed_address", uuid, added)
    assert sorted(addresses(cloud, uuid)) == sorted(before)


def test_address_when_network_or_address_is_not_the_servers_then_it_is_refused(cloud):
    [uuid] = cloud.active()
    other = cloud.neutron.add_network("other", ("10.9.0.0/24",))
    before = addresses(cloud, uuid)
    for call, argument in (("add_fixed_address", other), ("add_fixed_address", "none"),
                           ("remove_fixed_address", "10.9.0.1")):
        with pytest.raises(errors.Invalid):
            ask(cloud, call, uuid, argument)
    with pytest.raises(errors.NotFound):
        ask(cloud, "add_fixed_address", "00000000-0000-4000-8000-000000000000", cloud.net)
    assert addresses(cloud, uuid) == before


def test_address_when_a_stranger_says_that_his_port_is_the_servers_then_it_is_not_touched(cloud):
    [uuid] = cloud.active()
    other = cloud.neutron.add_network("other", ("10.9.0.0/24",))
    port = cloud.neutron.add_port(other, device_id=uuid, project_id="stranger")
    with pytest.raises(errors.Invalid):
        ask(cloud, "add_fixed_address", uuid, other)
    assert len(cloud.neutron.ports[port]["fixed_ips"]) == 1

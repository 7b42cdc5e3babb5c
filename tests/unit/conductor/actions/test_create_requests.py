"""What a create asks for by name is looked up before anything is made."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.db.models import cell as tables
from nova.model.image.images import Image
from nova.model.network.networks import RequestedNetwork
from nova.model.server.servers import NewServer
from tests.fakes.small_cloud import DEMO, SmallCloud

KEY = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"


class Images:
    """One image, with these properties."""

    def __init__(self, **properties: str) -> None:
        self.properties = properties

    def show(self, image_id: str, as_user: bool) -> Image:
        return Image(id=image_id, properties=self.properties)


def network(cloud: SmallCloud) -> str:
    return str(cloud.rows("cell", sa.select(tables.networks.c.uuid))[0].uuid)


def refused(cloud: SmallCloud, **fields: Any) -> str:
    """The message of the 400 that a create gets; nothing was made."""
    with pytest.raises(errors.Invalid) as caught:
        cloud.boot(**fields)
    assert cloud.rows("cell", sa.select(tables.servers)) == [] and not cloud.open_ledger()
    return caught.value.message


@pytest.mark.parametrize(("wish", "words"), [
    ({"host": "z"}, "Compute host z"), ({"host": "a", "node": "b"}, "Compute node b could not be found on host a"),
    ({"node": "z"}, "Compute node z"), ({"host": "a", "node": "", "forced": True}, ""),
    ({"security_groups": ("default", "web")}, "Security group web")])
def test_create_when_what_it_names_is_not_there_is_400(cloud: SmallCloud, wish: dict[str, Any], words: str) -> None:
    if not words:
        assert cloud.boot(**wish)
    else:
        assert words in refused(cloud, **wish)


def test_create_on_a_known_host_and_node_is_taken(cloud: SmallCloud) -> None:
    assert cloud.boot(host="a", node="a") and cloud.boot(node="b") and cloud.boot(host="b")


@pytest.mark.parametrize(("address", "words"), [
    ("10.1.0.9", "10.1.0.9 is not an address of network"), ("2001:db8::1", "is not an address of network"),
    ("10.0.0.1", "10.0.0.1 of network"), ("10.0.0.0", "is in use already")])
def test_create_with_a_fixed_address_out_of_reach_is_400(cloud: SmallCloud, address: str, words: str) -> None:
    wanted = (RequestedNetwork(network_id=network(cloud), fixed_ip=address),)
    assert words in refused(cloud, networks=wanted)


def test_create_with_an_address_of_another_server_is_400_and_repeated_it_is_the_same(cloud: SmallCloud) -> None:
    wanted = (RequestedNetwork(network_id=network(cloud), fixed_ip="10.0.0.77"),)
    order = NewServer(name="vm", flavor_id="1", networks=wanted, key=KEY)
    with context.entered(DEMO):
        made = cloud.control.create_servers(order)
        cloud.ended(made.uuids[0])
        assert cloud.control.create_servers(order).uuids == made.uuids, "the message came twice"
        with pytest.raises(errors.Invalid, match="10.0.0.77 of network .* in use"):
            cloud.control.create_servers(NewServer(name="vm", flavor_id="1", networks=wanted))


@pytest.mark.parametrize(("says", "asked", "config"), [
    ("true", None, "AUTO"), ("True", "MANUAL", "MANUAL"), ("false", None, "MANUAL"), ("false", "AUTO", "AUTO"),
    ("", None, "MANUAL"), ("disabled", None, "MANUAL"), ("Disabled", "MANUAL", "MANUAL")])
def test_disk_config_is_what_is_asked_for_or_the_images(cloud: SmallCloud, says: str, asked: str | None,
                                                        config: str) -> None:
    cloud.deps.images = Images(auto_disk_config=says)
    with context.entered(DEMO):
        made = cloud.control.create_servers(NewServer(name="vm", flavor_id="1", image_id=KEY,
                                                      disk_config=asked or "MANUAL", disk_config_asked=bool(asked)))
    assert made.disk_config == config == cloud.server(made.uuids[0]).disk_config


def test_disk_config_auto_of_an_image_that_forbids_it_is_400(cloud: SmallCloud) -> None:
    cloud.deps.images = Images(auto_disk_config="Disabled")
    assert "OS-DCF:diskConfig" in refused(cloud, image_id=KEY, disk_config="AUTO")


def test_longest_name_of_several_servers_is_cut_for_their_numbers(cloud: SmallCloud) -> None:
    with context.entered(DEMO):
        made = cloud.control.create_servers(NewServer(name="n" * 255, flavor_id="1", min_count=2, max_count=2))
    assert [cloud.server(uuid).name for uuid in made.uuids] == [f"{'n' * 253}-1", f"{'n' * 253}-2"]

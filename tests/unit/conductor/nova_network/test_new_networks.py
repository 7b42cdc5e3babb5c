"""Networks that cannot be served are refused when they are made, not when a server boots."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from nova import errors
from nova.conductor.networking.network_options import NetworkOptions
from nova.conductor.nova_network.back_end import NovaNetwork
from nova.model.base import Scope
from nova.model.network import addressing
from nova.model.network.network_managers import FLAT
from nova.model.network.networks import Network, NewNetwork
from tests.fakes.small_cloud import SmallCloud


def make(cloud: SmallCloud, label: str, **fields: Any) -> tuple[Network, ...]:
    number = len(cloud.control.list_networks(Scope()))
    made: tuple[Network, ...] = cloud.control.create_network(
        NewNetwork(label=label, cidr=f"10.77.{number}.0/24", **fields))
    return made


def with_options(cloud: SmallCloud, manager: str | None = None, **defaults: Any) -> None:
    options = {"manager": FLAT} if manager == FLAT.path else {}
    cloud.deps.settings = dataclasses.replace(
        cloud.deps.settings, networking=NetworkOptions(**options),
        network_defaults=addressing.Defaults(**defaults, **({"manager": manager} if manager else {})))
    cloud.deps.networking = NovaNetwork(cloud.deps)


def test_second_network_on_a_bridge_is_refused_and_servers_go_on_to_boot(cloud: SmallCloud) -> None:
    make(cloud, "first", bridge="br9")
    before = cloud.control.list_networks(Scope())
    with pytest.raises(errors.Conflict, match="the bridge br9 already has network first"):
        make(cloud, "second", bridge="br9")
    assert cloud.control.list_networks(Scope()) == before
    cloud.active()


def test_second_network_when_it_names_no_bridge_then_the_default_one_counts(cloud: SmallCloud) -> None:
    with_options(cloud, bridge="br9")
    make(cloud, "first")
    with pytest.raises(errors.Conflict, match="the bridge br9 already has network first"):
        make(cloud, "second")
    make(cloud, "third", bridge="br10")


def test_several_networks_at_once_when_they_would_be_on_one_bridge_then_none_is_made(cloud: SmallCloud) -> None:
    before = cloud.control.list_networks(Scope())
    with pytest.raises(errors.Conflict, match="already has network two_0"):
        make(cloud, "two", bridge="br9", num_networks=2)
    assert cloud.control.list_networks(Scope()) == before


def test_second_network_when_the_manager_has_no_dhcp_then_it_may_share_a_bridge(cloud: SmallCloud) -> None:
    with_options(cloud, FLAT.path)
    make(cloud, "first", bridge="br9")
    make(cloud, "second", bridge="br9")

"""One DHCP server a bridge."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from nova.model.network import bridges
from nova.model.network.networks import Network


def network(number: int, bridge: str | None = "br100", **fields: Any) -> Network:
    return Network(id=number, uuid=f"u{number}", label=f"n{number}", bridge=bridge, **fields)


def test_check_when_the_bridge_serves_another_then_it_names_bridge_and_network() -> None:
    with pytest.raises(errors.network.BridgeHasNetwork, match="Network n0: the bridge br100 already has network n1"):
        bridges.check([network(0)], [network(1)])
    with pytest.raises(errors.network.BridgeHasNetwork, match="already has network n3"):
        bridges.check([network(3, "br7"), network(4, "br7")], [network(1)])


def test_check_when_one_of_two_has_no_dhcp_or_no_bridge_then_they_may_share() -> None:
    bridges.check([network(0, enable_dhcp=False)], [network(1)])
    bridges.check([network(0)], [network(1, enable_dhcp=False)])
    bridges.check([network(0, None)], [network(1, None)])
    bridges.check([network(0, "br7")], [network(1)])


def test_check_when_others_share_a_bridge_already_then_they_stop_nobody_else() -> None:
    bridges.check([network(0, "br7")], [network(1), network(2)])


def test_shared_names_each_that_is_not_served_with_the_one_that_is() -> None:
    found = list(bridges.shared([network(1), network(2), network(3, "br7"), network(4)]))
    assert [(older.label, newer.label) for older, newer in found] == [("n1", "n2"), ("n1", "n4")]

"""Neutron's networks as os-networks and os-tenant-networks show them: an id and a name; all else is nova-network's."""

from __future__ import annotations

from typing import Any

from nova.conductor.networking.neutron_proxies.asking import Absent, is_id
from nova.model.base import Scope
from nova.model.networks import Network
from nova.model.ports import NeutronNetwork


class Networks:
    """The calls of NetworkCalls that Neutron has an answer to; the others are NotSupported."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def list_networks(self, scope: Scope) -> tuple[Network, ...]:
        found = self._client.networks(as_user=True)
        return tuple(_shown(one) for one in found if _usable(one, scope))

    def get_network(self, uuid: str, scope: Scope) -> Network:
        found = self._client.networks({"id": uuid}, as_user=True) if is_id(uuid) else ()
        for one in found:
            if _usable(one, scope):
                return _shown(one)
        raise Absent(what="Network", id=uuid)


def _usable(network: NeutronNetwork, scope: Scope) -> bool:
    return scope.project_id in (None, network.project_id) or network.shared or network.external


def _shown(network: NeutronNetwork) -> Network:
    return Network(uuid=network.id, label=network.name, mtu=network.mtu, project_id=network.project_id or None)

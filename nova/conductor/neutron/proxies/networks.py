"""Networks of Neutron, as os-networks and os-tenant-networks show them: only ID and name; all other fields are
nova-network's."""

from __future__ import annotations

from nova import errors
from nova.clients.neutron import Neutron
from nova.conductor.neutron.proxies.asking import is_id
from nova.model.base import Scope
from nova.model.network.networks import NEUTRON, Network
from nova.model.network.ports import NeutronNetwork


class NetworksByNeutron:
    """The calls of NetworkCalls that Neutron supports; the others are NotSupported. ``of_all``: the project whose
    networks all users are shown (use_neutron_default_nets). Users cannot see them in Neutron, so they are read with
    nova's credentials."""

    def __init__(self, client: Neutron, of_all: str | None = None) -> None:
        self._client, self._of_all = client, of_all

    def list_networks(self, scope: Scope) -> tuple[Network, ...]:
        """Return the project's own, shared and external networks; without a project in the scope, all that the user
        sees."""
        found = {one.id: one for one in self._client.networks(as_user=True) if _usable(one, scope)}
        if self._of_all and scope.project_id is not None:
            found |= {one.id: one for one in self._client.networks({"tenant_id": self._of_all})}
        return tuple(map(_shown, found.values()))

    def get_network(self, uuid: str, scope: Scope) -> Network:
        """Return one network. Raises network.Absent, also if the scope's project may not use it."""
        if not is_id(uuid):
            raise errors.network.Absent(what="Network", id=uuid)
        found = [one for one in self._client.networks({"id": uuid}, as_user=True) if _usable(one, scope)]
        if not found and self._of_all:
            found = list(self._client.networks({"id": uuid, "tenant_id": self._of_all}))
        if not found:
            raise errors.network.Absent(what="Network", id=uuid)
        return _shown(found[0])


def _usable(network: NeutronNetwork, scope: Scope) -> bool:
    return scope.project_id in (None, network.project_id) or network.shared or network.external


def _shown(network: NeutronNetwork) -> Network:
    return Network(uuid=network.id, label=network.name, back_end=NEUTRON)

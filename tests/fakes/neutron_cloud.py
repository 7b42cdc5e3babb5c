"""The clouds of the conductor's tests with Neutron in place of nova-network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nova.conductor.actions.interfaces import detach_at_once
from nova.conductor.engine.deps import Deps
from nova.conductor.neutron.back_end import Neutron
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.move_cloud import MoveCloud
from tests.fakes.neutron import FakeNeutron
from tests.fakes.small_cloud import DEMO, until


class NeutronCloud(FailingCloud):
    """``neutron`` has the project's only network, ``net``, of IPv4 and IPv6."""

    furnished = False

    def __init__(self, folder: Path, templates: Path) -> None:
        self.neutron = FakeNeutron(tokens={str(DEMO.token): "demo"})
        self.net = self.neutron.add_network("private", ("10.1.0.0/24", "fd00:1::/64"))
        self.neutron.add_group("default")
        super().__init__(folder, templates)  # which makes a network of nova-network's, once for all clouds
        self.furnished = True
        self.deps.networking = self.make_back_end(self.deps)

    def make_back_end(self, deps: Deps) -> Any:
        if not self.furnished:
            return super().make_back_end(deps)
        return Neutron(deps, self.neutron.client(), detach_at_once(deps), gather_s=0.0)

    def close(self) -> None:
        until(lambda: not self.deps.networking.events.busy, "events are passed on")
        super().close()

    def held(self) -> dict[str, list[Any]]:
        """With the ports that servers have, as (host, server)."""
        held = super().held()
        ports = sorted((port["binding:host_id"], port["device_id"]) for port in self.neutron.ports.values()
                       if port["device_id"])
        return {**held, "ports": ports} if ports else held

    def bound(self, uuid: str, host: str) -> None:
        """The server's ports are on that host and no other, and its row says so."""
        row, ports = self.server(uuid), self.neutron.of(uuid)
        assert [one.id for one in row.interfaces] == [port["id"] for port in ports]
        for port in ports:
            assert self.neutron.hosts_of(port["id"]) == {host: "ACTIVE"}, self.neutron.hosts_of(port["id"])
            assert port["binding:host_id"] == host


class NeutronMoveCloud(NeutronCloud, MoveCloud):
    """With moves."""

    def whole(self, uuid: str, host: str) -> None:
        super().whole(uuid, host)
        self.bound(uuid, host)
        assert len(self.neutron.of(uuid)) == 1


__all__ = ["NeutronCloud", "NeutronMoveCloud", "until"]

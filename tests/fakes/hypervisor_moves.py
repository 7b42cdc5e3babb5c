"""The part of the fake hypervisor that migrates guests to other fake hypervisors, through their open listeners."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import msgspec

from nova import errors
from nova.migrationproxy import ListenerPlan, Ready, TunnelPlan, references
from nova.model.server.migrations import MigrationProgress
from nova.model.server.states import PowerState
from nova.virt.libvirt.hypervisor import CpuComparison, MigrationParams, RunningMigration
from nova.virt.libvirt.moves.proxies import PLAN_FILE, READY_FILE

AMOUNTS = MigrationProgress(memory_total_bytes=100, memory_processed_bytes=60, memory_remaining_bytes=40)


def _decoded(path: Path, kind: Any) -> Any:
    return msgspec.json.decode(path.read_bytes(), type=kind)


class Migrations:
    """Migrations. ``migration_hangs``: it ends only by an abort or a force. ``migration_fails``: reason of the next
    one's failure, at its end. ``migration_lost``: the connection of the next call breaks, but the guest moves.
    ``flags``: of the processor. ``downtimes``: set values; ``forced``: modes. ``peers``: other hosts, by the directory
    of their listeners."""

    xml: dict[str, str]
    power: dict[str, PowerState]

    def __init__(self) -> None:
        self.peers: dict[Path, Any] = {}
        self.migration_hangs, self.migration_fails, self.migration_lost, self.no_post_copy = False, "", False, False
        self.flags: frozenset[str] = frozenset({"aes", "sse4.2"})
        self.departures: list[MigrationParams] = []
        self.jobs: dict[str, RunningMigration] = {}
        self.downtimes: list[int] = []
        self.forced: list[str] = []
        self._aborted: set[str] = set()

    def migratable_xml(self, server_uuid: str) -> str:
        self._known(server_uuid)  # type: ignore[attr-defined]
        return self.shown(server_uuid)  # type: ignore[attr-defined]

    def cpu_incompatibility(self, question: CpuComparison) -> str:
        wanted = {one.get("name", "") for one in ET.fromstring(question.cpu).iterfind("feature")}
        missing = sorted(wanted - self.flags)
        return f"Host CPU does not provide required features: {', '.join(missing)}" if missing else ""

    def migrate(self, server_uuid: str, departure: MigrationParams) -> None:
        state = self._known(server_uuid)  # type: ignore[attr-defined]
        peer = self._let_in(server_uuid, departure)
        files = [one.get("file", "") for one in ET.fromstring(departure.xml).iterfind("devices/disk//source")]
        missing = [file for file in files if not Path(file).exists()]
        if peer is None or missing:
            raise errors.host.LibvirtRefused(task="migrate the guest",
                                             reason=f"cannot reach {departure.uri} or open {missing}")
        self.departures.append(departure)
        self.jobs[server_uuid] = RunningMigration(progress=AMOUNTS, percent=60)
        try:
            while self.migration_hangs and server_uuid not in self._aborted and not self.forced:
                time.sleep(0.01)
        finally:
            del self.jobs[server_uuid]
        if server_uuid in self._aborted:
            self._aborted.discard(server_uuid)
            raise errors.host.LibvirtRefused(task="migrate the guest", reason="operation aborted: canceled by client")
        if self.migration_fails:
            reason, self.migration_fails = self.migration_fails, ""
            raise errors.host.LibvirtRefused(task="migrate the guest", reason=reason)
        peer.xml[server_uuid], peer.power[server_uuid] = departure.xml, state
        del self.xml[server_uuid], self.power[server_uuid]
        self.forget_screens(server_uuid)  # type: ignore[attr-defined]
        if self.migration_lost:
            raise errors.host.LibvirtDown(host="host1", uri="fake:///", reason="it went away")

    def _let_in(self, server_uuid: str, departure: MigrationParams) -> Any:
        """Return the host at the end of the tunnel at ``departure``; None if it would not admit this definition."""
        socket = Path(departure.uri.partition("socket=")[2])
        try:
            tunnel = msgspec.json.decode((socket.parent.parent / PLAN_FILE).read_bytes(), type=TunnelPlan)
            for directory, peer in self.peers.items():
                gate = directory / server_uuid
                if socket.exists() and gate.exists() and tunnel.port == _decoded(gate / READY_FILE, Ready).port:
                    references.check(departure.xml, _decoded(gate / PLAN_FILE, ListenerPlan).definition)
                    return peer
        except references.Refused as error:
            raise errors.host.LibvirtRefused(task="migrate the guest", reason=str(error)) from error
        return None

    def job(self, server_uuid: str) -> RunningMigration | None:
        return self.jobs.get(server_uuid)

    def migrated(self, server_uuid: str) -> bool:
        return server_uuid not in self.power

    def abort_migration(self, server_uuid: str) -> None:
        self._under_way(server_uuid)
        self._aborted.add(server_uuid)

    def start_post_copy(self, server_uuid: str) -> None:
        self._under_way(server_uuid)
        if self.no_post_copy:
            raise errors.host.LibvirtRefused(task="start post-copy", reason="not supported")
        self.forced.append("post-copy")

    def set_downtime(self, server_uuid: str, milliseconds: int) -> None:
        self._under_way(server_uuid)
        self.downtimes.append(milliseconds)

    def _under_way(self, server_uuid: str) -> None:
        if server_uuid not in self.power:
            raise errors.guest.NotDefined(uuid=server_uuid)
        if server_uuid not in self.jobs:
            raise errors.host.LibvirtRefused(task="change the migration", reason="no job is active on the domain")

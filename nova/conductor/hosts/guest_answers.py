"""What guests ask through the metadata service of a host: who they are, and to keep a password.

A host is told of a guest that is its own, or whose network it serves; a control host, and one with a metadata service
that is no compute host, of all; one that nobody knows, of none. Whoever asks by address
must be one guest: where two networks have the address, the host that asks tells which, and else nobody is answered.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from nova import errors
from nova.conductor import ec2_numbers
from nova.conductor.engine.deps import Deps
from nova.conductor.steps.guests import disks_of, packing_at
from nova.db.host import services
from nova.db.network import guests, networks
from nova.db.server import servers
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.base import HostName
from nova.model.guest.guest_devices import dedicated_cpus, has_devices
from nova.model.guest.guests import DevicePlace, GuestFacts, GuestPassword, GuestQuery

LOG = logging.getLogger(__name__)

#: What registers by the other contract, which compute hosts have no way to.
CONTROL = {"nova-conductor", "nova-scheduler"}


class GuestAnswers:
    """``believed``: who asks is a control daemon, and is told of all guests."""

    def __init__(self, deps: Deps, believed: bool = False) -> None:
        self.deps, self._believed = deps, believed

    def guest_facts(self, host: HostName, query: GuestQuery) -> GuestFacts:
        """guest.UnknownName; Invalid: a provider's address is not one guest's; Unavailable: Neutron, which knows
        that."""
        uuid, projects = query.server_uuid, {query.project_id} - {None}
        if query.provider_id is not None:  # anybody can say of a port of theirs that it is any server's
            uuid, project = self.deps.networking.guest_at(query.provider_id, query.address or "")
            projects.add(project)
        with self.deps.cell.reading() as tx:
            uuid = uuid or _at(tx, host, query.address)
            row = servers.rows_of(tx, [uuid]).get(uuid) if uuid else None
            if row is None or projects - {row.project_id} or not self._may_ask_for(tx, host, row):
                raise errors.guest.UnknownName(name=query.server_uuid or query.address)
            metadata, _tags = servers.children(tx, [row.uuid])
        packing = packing_at(self.deps, row, row.host) if row.host else None
        facts = facts_of(row, metadata.get(row.uuid, {}), dedicated_cpus(packing), self._places(row))
        return msgspec.structs.replace(facts, ec2_numbers=ec2_numbers.of_guest(self.deps, row),
                                       security_groups=self.deps.networking.groups_kept(row))

    def set_guest_password(self, host: HostName, password: GuestPassword) -> None:
        """The first one stands."""
        def write(tx: Connection) -> None:
            servers.lock_row(tx, password.server_uuid)  # two may come at once
            row = servers.rows_of(tx, [password.server_uuid]).get(password.server_uuid)
            if row is None or not self._may_ask_for(tx, host, row):
                raise errors.guest.UnknownName(name=password.server_uuid)
            if row.guest_password:
                raise errors.guest.PasswordKept()
            servers.update(tx, password.server_uuid, {"guest_password": password.password})
        self.deps.cell.transact(write)

    def _may_ask_for(self, tx: Connection, host: str, row: ServerRow) -> bool:
        return self._believed or may_ask_for(tx, host, row)

    def _places(self, row: ServerRow) -> Mapping[str, DevicePlace]:
        """Its host knows them. It is asked for guests with such devices only; a guest goes without rather than get
        nothing."""
        if not row.host or not has_devices(row.interfaces or ()):
            return {}
        try:
            places: Mapping[str, DevicePlace] = self.deps.compute.device_places(row.host, row.uuid)
        except errors.NovaError as error:
            LOG.info("where its devices are is not known: %s", error.message, extra={"server": row.uuid})
            return {}
        return {one.mac.lower(): places[one.mac.lower()] for one in row.interfaces or () if one.mac.lower() in places}


def _at(tx: Connection, host: str, address: str | None) -> str | None:
    found = guests.holders(tx, address) if address else ()
    if len(found) > 1:
        here = [one for one in found if one.served_by == host]
        if len(here) != 1:
            LOG.warning("%d guests have the address %s in networks of their own, and %s serves %s of them: none is "
                        "answered. Run the metadata service on the network hosts, or behind Neutron's proxy",
                        len(found), address, host, len(here) or "none")
            return None
        found = tuple(here)
    return found[0].server_uuid if found else None


def may_ask_for(tx: Connection, host: str, row: ServerRow) -> bool:
    """Whether a host's metadata service may tell this guest's secrets: for its own guests, and for those of networks
    that it serves; where control daemons run for all, and where the metadata service runs without guests beside it
    (now, and before: who took a compute host from the cloud may not trust it)."""
    if row.host == host:
        return True
    runs, ran = services.binaries_ever(tx, host)
    if runs & CONTROL or services.METADATA in runs and services.COMPUTE not in runs | ran:
        return True
    return networks.any_served(tx, host, [one.network_id for one in row.interfaces or ()])


def facts_of(row: ServerRow, metadata: Mapping[str, str], dedicated: tuple[int, ...] = (),
             places: Mapping[str, DevicePlace] | None = None) -> GuestFacts:
    """From a server's row."""
    disks = disks_of(row)
    return GuestFacts(
        uuid=row.uuid, id=row.id, name=row.name, hostname=row.hostname or "", project_id=row.project_id,
        user_id=row.user_id, reservation_id=row.reservation_id, launch_index=row.launch_index,
        availability_zone=row.availability_zone, metadata=metadata, key_name=row.key_name, public_key=row.public_key,
        key_type=row.key_type, user_data=row.user_data, flavor_name=row.flavor.name, image_id=row.image_id,
        kernel_id=row.kernel_id or None, ramdisk_id=row.ramdisk_id or None, root_device_name=row.root_device_name,
        interfaces=row.interfaces or (), files=row.files or {},
        password=row.guest_password or "", swap_mb=sum(disk.size_mb for disk in disks if disk.kind == "swap"),
        ephemeral_count=sum(1 for disk in disks if disk.kind == "ephemeral"), dedicated_cpus=dedicated,
        places=places or {})

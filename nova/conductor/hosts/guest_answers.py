"""Answers to guests' requests through a host's metadata service: their metadata, and storing a password.

A host gets the facts of its own guests, and of guests whose networks it serves. A control host, and a host that runs a
metadata service but no nova-compute, gets those of all guests. An unknown host gets none. A request by address must
match one guest: if several networks have the address, the asking host decides, and otherwise the request is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.conductor.steps.guests import disks_of
from nova.db.host import services
from nova.db.network import guests, networks
from nova.db.server import servers
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.base import HostName
from nova.model.guest.guest_devices import has_devices
from nova.model.guest.guests import DevicePlace, GuestFacts, GuestPassword, GuestQuery

LOG = logging.getLogger(__name__)

#: Binaries that register by ConductorRPC, which compute hosts cannot call.
CONTROL = {"nova-conductor", "nova-scheduler"}


class GuestAnswers:
    """Metadata for guests. ``believed``: the caller is a control daemon, and may read all guests' facts."""

    def __init__(self, deps: Deps, believed: bool = False) -> None:
        self.deps, self._believed = deps, believed

    def guest_facts(self, host: HostName, query: GuestQuery) -> GuestFacts:
        """Return the metadata facts of the guest that asks. Raises guest.UnknownName; Invalid if an address at a
        provider is not one guest's; Unavailable if Neutron, which resolves it, does not answer."""
        uuid, projects = query.server_uuid, {query.project_id} - {None}
        if query.provider_id is not None:  # any user can set any server as the device of their own port
            uuid, project = self.deps.networking.guest_at(query.provider_id, query.address or "")
            projects.add(project)
        with self.deps.cell.reading() as tx:
            uuid = uuid or _at(tx, host, query.address)
            row = servers.rows_of(tx, [uuid]).get(uuid) if uuid else None
            if row is None or projects - {row.project_id} or not self._may_ask_for(tx, host, row):
                raise errors.guest.UnknownName(name=query.server_uuid or query.address)
            metadata, _tags = servers.children(tx, [row.uuid])
        known = self.deps.api_side.guest_facts(row)
        facts = facts_of(row, metadata.get(row.uuid, {}), known.dedicated_cpus, self._places(row))
        return msgspec.structs.replace(facts, ec2_numbers=known.ec2_numbers,
                                       security_groups=self.deps.networking.groups_kept(row))

    def set_guest_password(self, host: HostName, password: GuestPassword) -> None:
        """Store the guest's password; the first one is kept. Raises guest.UnknownName, guest.PasswordKept."""
        def write(tx: Connection) -> None:
            servers.lock_row(tx, password.server_uuid)  # two requests may run at the same time
            row = servers.rows_of(tx, [password.server_uuid]).get(password.server_uuid)
            if row is None or not self._may_ask_for(tx, host, row):
                raise errors.guest.UnknownName(name=password.server_uuid)
            if row.guest_password:
                raise errors.guest.PasswordKept()
            servers.update(tx, password.server_uuid, {"guest_password": password.password})
        with failures.replaced(errors.server.NotFound, lambda _: errors.guest.UnknownName(name=password.server_uuid)):
            self.deps.cell.transact(write)

    def _may_ask_for(self, tx: Connection, host: str, row: ServerRow) -> bool:
        return self._believed or may_ask_for(tx, host, row)

    def _places(self, row: ServerRow) -> Mapping[str, DevicePlace]:
        """Return the places of the guest's devices, by MAC address. Only the host knows them, so it is asked, and only
        for guests with such devices. On an error the answer has no places: the guest still gets its other facts."""
        if not row.host or not has_devices(row.interfaces or ()):
            return {}
        try:
            places: Mapping[str, DevicePlace] = self.deps.compute.device_places(row.host, row.uuid)
        except errors.NovaError as error:
            LOG.info("the places of the guest's devices are unknown: %s", error.message, extra={"server": row.uuid})
            return {}
        return {one.mac.lower(): places[one.mac.lower()] for one in row.interfaces or () if one.mac.lower() in places}


def _at(tx: Connection, host: str, address: str | None) -> str | None:
    found = guests.holders(tx, address) if address else ()
    if len(found) > 1:
        here = [one for one in found if one.served_by == host]
        if len(here) != 1:
            LOG.warning("%d guests have the address %s in separate networks, and host %s serves %s of them; request "
                        "refused. Run the metadata service on the network hosts, or behind Neutron's proxy",
                        len(found), address, host, len(here) or "none")
            return None
        found = tuple(here)
    return found[0].server_uuid if found else None


def may_ask_for(tx: Connection, host: str, row: ServerRow) -> bool:
    """True if a host's metadata service may read this guest's secrets. It may for its own guests, and for guests of
    networks that it serves. A host with control daemons may for all guests, and so may a metadata service on a host
    without nova-compute. Former binaries of the host count too: the operator who removed a compute host from the cloud
    may not trust it."""
    if row.host == host:
        return True
    runs, ran = services.binaries_ever(tx, host)
    if runs & CONTROL or services.METADATA in runs and services.COMPUTE not in runs | ran:
        return True
    return networks.any_served(tx, host, [one.network_id for one in row.interfaces or ()])


def facts_of(row: ServerRow, metadata: Mapping[str, str], dedicated: tuple[int, ...] = (),
             places: Mapping[str, DevicePlace] | None = None) -> GuestFacts:
    """Return the metadata facts of a server, from its row."""
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

"""The part of ``ConductorRPC`` about volumes: those of servers, and the volume service's for clients of old
versions."""

from __future__ import annotations

from nova.model.server.servers import ServerQuery
from nova.model.volumes import (
    AttachVolume,
    BlockDevice,
    ComparedAttachments,
    Connector,
    NewAssistedSnapshot,
    NewVolume,
    NewVolumeSnapshot,
    OldAssistedSnapshot,
    Volume,
    VolumeMetadataChange,
    VolumeQuery,
    VolumeSnapshot,
)
from nova.rpc.interface import call


class ServerVolumeCalls:
    """Servers' disks on volumes."""

    @call(reads=True, since="1.7")
    def list_server_volumes(self, query: ServerQuery) -> tuple[BlockDevice, ...]:
        """Return the volumes in the guest's order, including those not yet attached. Raises NotFound outside the
        scope."""

    @call(since="1.7")
    def attach_volume(self, server_uuid: str, wanted: AttachVolume, wait: bool) -> BlockDevice:
        """Begin to attach a volume; with ``wait``, return after the guest has it. Raises NotFound for the server or
        volume; Invalid if the volume is unavailable, attached, or not usable by the server; Conflict for its state;
        Forbidden for too many disks."""

    @call(since="1.7")
    def detach_volume(self, server_uuid: str, volume_id: str) -> None:
        """Begin to detach a volume. Raises NotFound if it is not attached; Invalid if the server boots from it, or for
        the volume's state; Conflict for the server's state, or if its host is down."""

    @call(since="1.7")
    def swap_volume(self, server_uuid: str, volume_id: str, new_volume_id: str) -> None:
        """Begin to copy a volume of a running guest to another one, which replaces it. Raises NotFound; Invalid;
        Conflict if the volume service did not request it."""

    @call(since="1.7")
    def keep_volume(self, server_uuid: str, volume_id: str, delete_on_termination: bool) -> None:
        """Set whether the volume is deleted with its server. Raises NotFound if it is not attached."""

    @call(since="1.7")
    def create_assisted_snapshot(self, wanted: NewAssistedSnapshot) -> None:
        """Begin a snapshot on the volume's host, for the volume service with file-backed volumes. Raises Invalid if no
        server has the volume, several may have it, or its server is busy or on no host."""

    @call(since="1.7")
    def delete_assisted_snapshot(self, gone: OldAssistedSnapshot) -> None:
        """Begin to merge such a snapshot. Raises NotFound; Invalid as for its creation, or if its guest would have to
        run."""


class AttachmentUpkeepCalls:
    """Operators' maintenance of servers' attachments at the volume service."""

    @call(since="1.7")
    def host_connector(self, host: str) -> Connector:
        """Return the host's connector properties for a volume's back end. Raises NotSupported if it has no volumes."""

    @call(since="1.7")
    def compare_attachments(self, limit: int) -> ComparedAttachments:
        """Compare servers' records with the volume service's attachments, for ``limit`` attachments; each call checks
        other ones. Raises Unavailable for the volume service."""

    @call(since="1.7")
    def refresh_attachment(self, server_uuid: str, volume_id: str, connector: Connector | None) -> BlockDevice:
        """Replace an attachment by a new one, with this connector (None: that of the server's host). Raises NotFound;
        Conflict if the server is not off, or an operation works on it."""


class VolumeProxyCalls:
    """The volume service's data as the user sees them (with the token in the context)."""

    @call(reads=True, since="1.7")
    def list_volumes(self, query: VolumeQuery) -> tuple[Volume, ...]:
        """Return a page of the project's volumes."""

    @call(reads=True, since="1.7")
    def get_volume(self, volume_id: str) -> Volume:
        """Return one volume. Raises NotFound."""

    @call(since="1.7")
    def create_volume(self, new: NewVolume) -> Volume:
        """Create a volume. Raises OverQuota; Invalid; NotFound for the snapshot."""

    @call(since="1.7")
    def delete_volume(self, volume_id: str) -> None:
        """Delete a volume. Raises NotFound; Invalid if it is in use."""

    @call(since="1.8")
    def change_volume_metadata(self, change: VolumeMetadataChange) -> None:
        """Change the metadata of a volume or a snapshot. Raises NotFound and Invalid."""

    @call(reads=True, since="1.7")
    def list_volume_snapshots(self, query: VolumeQuery) -> tuple[VolumeSnapshot, ...]:
        """Return a page of the project's snapshots of volumes."""

    @call(reads=True, since="1.7")
    def get_volume_snapshot(self, snapshot_id: str) -> VolumeSnapshot:
        """Return one snapshot. Raises NotFound."""

    @call(since="1.7")
    def create_volume_snapshot(self, new: NewVolumeSnapshot) -> VolumeSnapshot:
        """Create a snapshot. Raises NotFound for the volume; Invalid; OverQuota."""

    @call(since="1.7")
    def delete_volume_snapshot(self, snapshot_id: str) -> None:
        """Delete a snapshot. Raises NotFound; Invalid if it is in use."""

"""The part of ``ConductorRPC`` about volumes: of servers, and of the volume service for clients of old versions."""

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
    """A server's disks that lie on volumes."""

    @call(reads=True, since="1.7")
    def list_server_volumes(self, query: ServerQuery) -> tuple[BlockDevice, ...]:
        """In the guest's order, with volumes that are still to be attached. NotFound outside the scope."""

    @call(since="1.7")
    def attach_volume(self, server_uuid: str, wanted: AttachVolume, wait: bool) -> BlockDevice:
        """Refused at once, or begun; with ``wait`` it answers when the guest has it. NotFound: server or volume.
        Invalid: the volume is not to be had, is attached, or cannot be the server's; Conflict: its state; Forbidden:
        too many disks."""

    @call(since="1.7")
    def detach_volume(self, server_uuid: str, volume_id: str) -> None:
        """Refused at once, or begun. NotFound: not attached; Invalid: the server boots from it, or the volume's state;
        Conflict: the server's state, or its host is down."""

    @call(since="1.7")
    def swap_volume(self, server_uuid: str, volume_id: str, new_volume_id: str) -> None:
        """Begin to copy a volume of a running guest to another one, which takes its place. NotFound, Invalid; Conflict:
        the volume service did not ask for it."""

    @call(since="1.7")
    def keep_volume(self, server_uuid: str, volume_id: str, delete_on_termination: bool) -> None:
        """Whether the volume is deleted with its server. NotFound: not attached."""

    @call(since="1.7")
    def create_assisted_snapshot(self, wanted: NewAssistedSnapshot) -> None:
        """For the volume service, whose volumes are files: begin a snapshot on the volume's host. Invalid: no server
        has the volume, several may have it, or its server is busy or on no host."""

    @call(since="1.7")
    def delete_assisted_snapshot(self, gone: OldAssistedSnapshot) -> None:
        """Begin to merge such a snapshot away. NotFound; Invalid, as of its making, or its guest would have to run."""


class AttachmentUpkeepCalls:
    """What operators do about servers' attachments at the volume service."""

    @call(since="1.7")
    def host_connector(self, host: str) -> Connector:
        """What the host says of itself to a volume's back end. NotSupported: it has no volumes."""

    @call(since="1.7")
    def compare_attachments(self, limit: int) -> ComparedAttachments:
        """Servers' records with the volume service's attachments, of ``limit`` uses of volumes: each time of others.
        Unavailable: the volume service."""

    @call(since="1.7")
    def refresh_attachment(self, server_uuid: str, volume_id: str, connector: Connector | None) -> BlockDevice:
        """A new attachment in place of one; None: as the server's host says. NotFound; Conflict: the server is not off,
        or something works on it."""


class VolumeProxyCalls:
    """What the volume service has, as the user sees it (the token in the context is used)."""

    @call(reads=True, since="1.7")
    def list_volumes(self, query: VolumeQuery) -> tuple[Volume, ...]:
        """A page of the project's volumes."""

    @call(reads=True, since="1.7")
    def get_volume(self, volume_id: str) -> Volume:
        """NotFound."""

    @call(since="1.7")
    def create_volume(self, new: NewVolume) -> Volume:
        """OverQuota; Invalid; NotFound: the snapshot."""

    @call(since="1.7")
    def delete_volume(self, volume_id: str) -> None:
        """NotFound; Invalid: it is in use."""

    @call(since="1.8")
    def change_volume_metadata(self, change: VolumeMetadataChange) -> None:
        """Of a volume or a snapshot. NotFound; Invalid."""

    @call(reads=True, since="1.7")
    def list_volume_snapshots(self, query: VolumeQuery) -> tuple[VolumeSnapshot, ...]:
        """A page of the project's snapshots of volumes."""

    @call(reads=True, since="1.7")
    def get_volume_snapshot(self, snapshot_id: str) -> VolumeSnapshot:
        """NotFound."""

    @call(since="1.7")
    def create_volume_snapshot(self, new: NewVolumeSnapshot) -> VolumeSnapshot:
        """NotFound: the volume. Invalid, OverQuota."""

    @call(since="1.7")
    def delete_volume_snapshot(self, snapshot_id: str) -> None:
        """NotFound; Invalid: it is in use."""

"""What the actions with arguments ask for: a value each. Version differences are translated away before."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Value


class RebuildServer(Value):
    """Make a server anew from an image. ``fields`` names what else is written (None is a value then): name, metadata,
    description, hostname, key_name, user_data, access_ip_v4, access_ip_v6, disk_config, trusted_certs, files.
    ``reimage``: the request's version knows that a volume that the server boots from is written over.
    """

    uuid: str
    image_id: str
    fields: tuple[str, ...] = ()
    name: str | None = None
    metadata: Mapping[str, str] = {}
    description: str | None = None
    hostname: str | None = None
    key_name: str | None = None
    user_data: str | None = None  # base64
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    disk_config: str | None = None
    trusted_certs: tuple[str, ...] | None = None
    files: Mapping[str, str] = {}  # path -> base64 contents (personality)
    preserve_ephemeral: bool = False
    admin_password: str | None = None
    reimage: bool = False


class ResizeServer(Value):
    """``may_zero_disk``: policy servers:create:zero_disk_flavor passed."""

    uuid: str
    flavor_id: str
    disk_config: str | None = None
    may_zero_disk: bool = True


class MigrateServer(Value):
    """A cold migration, to ``host`` where one is named."""

    uuid: str
    host: str | None = None


class LiveMigrateServer(Value):
    """``block_migration`` None: as the storage of both hosts says. ``force``: the scheduler is not asked.
    ``wait_for_checks``: answered after source and destination were asked, and what they refuse is Invalid.
    """

    uuid: str
    host: str | None = None
    block_migration: bool | None = None
    disk_over_commit: bool = False
    force: bool = False
    wait_for_checks: bool = False


class EvacuateServer(Value):
    """``on_shared_storage`` None: the destination looks. ``stay_off``: it is not started there (2.95 on)."""

    uuid: str
    host: str | None = None
    on_shared_storage: bool | None = None
    admin_password: str | None = None
    force: bool = False
    stay_off: bool = False


class CreateImage(Value):
    """``metadata_limited``: the metadata counts against the project's quota of metadata items. ``stopped``: a server
    on volumes is stopped for its snapshots, and started again."""

    uuid: str
    name: str
    metadata: Mapping[str, str] = {}
    metadata_limited: bool = False
    stopped: bool = False


class CreateBackup(Value):
    """``backup_type`` and ``rotation``: of one type of a server's backups so many are kept."""

    uuid: str
    name: str
    backup_type: str
    rotation: int
    metadata: Mapping[str, str] = {}
    metadata_limited: bool = False  # as of an image


class RescueServer(Value):
    """``image_id`` None: the server's own image. ``from_volume``: the request's version knows that servers that boot
    from a volume are rescued."""

    uuid: str
    image_id: str | None = None
    admin_password: str | None = None
    from_volume: bool = False


class ChangePassword(Value):
    uuid: str
    password: str


class UnshelveServer(Value):
    """``fields`` names which of ``availability_zone`` (None unpins the server) and ``host`` were asked for."""

    uuid: str
    fields: tuple[str, ...] = ()
    availability_zone: str | None = None
    host: str | None = None


class MigrationOrder(Value):
    """A live migration that is under way."""

    uuid: str
    migration_id: int

"""Arguments of actions, one type for each action. Differences between API versions are translated before."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Value


class RebuildServer(Value):
    """Rebuild a server from an image. ``fields`` names the other fields to write (None is a value then): name,
    metadata, description, hostname, key_name, user_data, access_ip_v4, access_ip_v6, disk_config, trusted_certs, files.
    ``reimage``: the request's version permits overwriting a boot volume."""

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
    """Resize a server. ``may_zero_disk``: policy servers:create:zero_disk_flavor passed; ``cross_cell``: policy
    servers:resize:cross_cell passed, so it may go to another cell."""

    uuid: str
    flavor_id: str
    disk_config: str | None = None
    may_zero_disk: bool = True
    cross_cell: bool = False


class MigrateServer(Value):
    """A cold migration, to ``host`` if it is set. ``cross_cell``: as of a resize."""

    uuid: str
    host: str | None = None
    cross_cell: bool = False


class LiveMigrateServer(Value):
    """A live migration. ``block_migration`` None: determined by the storage of both hosts. ``force``: bypass the
    scheduler. ``wait_for_checks``: answer after the checks of source and destination, whose refusal is Invalid."""

    uuid: str
    host: str | None = None
    block_migration: bool | None = None
    disk_over_commit: bool = False
    force: bool = False
    wait_for_checks: bool = False


class EvacuateServer(Value):
    """An evacuation. ``on_shared_storage`` None: the destination checks. ``stay_off``: do not start the server there
    (from 2.95)."""

    uuid: str
    host: str | None = None
    on_shared_storage: bool | None = None
    admin_password: str | None = None
    force: bool = False
    stay_off: bool = False


class CreateImage(Value):
    """Create an image of a server. ``metadata_limited``: the metadata counts for the project's quota of metadata items.
    ``stopped``: stop a server with volumes for its snapshots, and start it again."""

    uuid: str
    name: str
    metadata: Mapping[str, str] = {}
    metadata_limited: bool = False
    stopped: bool = False


class CreateBackup(Value):
    """Create a backup. ``backup_type`` and ``rotation``: the number of backups to keep of that type."""

    uuid: str
    name: str
    backup_type: str
    rotation: int
    metadata: Mapping[str, str] = {}
    metadata_limited: bool = False  # as for an image


class RescueServer(Value):
    """Rescue a server. ``image_id`` None: the server's own image. ``from_volume``: the request's version supports the
    rescue of servers with a boot volume."""

    uuid: str
    image_id: str | None = None
    admin_password: str | None = None
    from_volume: bool = False


class ChangePassword(Value):
    uuid: str
    password: str


class UnshelveServer(Value):
    """Unshelve a server. ``fields`` names the requested ones of ``availability_zone`` (None unpins the server) and
    ``host``."""

    uuid: str
    fields: tuple[str, ...] = ()
    availability_zone: str | None = None
    host: str | None = None


class MigrationOrder(Value):
    """A live migration in progress."""

    uuid: str
    migration_id: int

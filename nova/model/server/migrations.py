"""Migrations and resizes of servers, as the API shows them."""

from __future__ import annotations

from nova.model.base import Page, Time, Value
from nova.model.flavor.flavors import Flavor

MIGRATION, RESIZE, LIVE_MIGRATION, EVACUATION = "migration", "resize", "live-migration", "evacuation"
TYPES = (MIGRATION, RESIZE, LIVE_MIGRATION, EVACUATION)

QUEUED, PREPARING, RUNNING, POST_MIGRATING = "queued", "preparing", "running", "post-migrating"
#: Statuses of a live migration in progress.
LIVE_STATUSES = (QUEUED, PREPARING, RUNNING, POST_MIGRATING)

PRE_MIGRATING, MIGRATING, FINISHED = "pre-migrating", "migrating", "finished"
CONFIRMING, CONFIRMED, REVERTING, REVERTED = "confirming", "confirmed", "reverting", "reverted"
ACCEPTED, DONE, COMPLETED, CANCELLED, FAILED, ERROR = "accepted", "done", "completed", "cancelled", "failed", "error"
#: Final statuses of a migration.
OVER = (CONFIRMED, REVERTED, DONE, COMPLETED, CANCELLED, FAILED, ERROR)


class MigrationProgress(Value):
    """Progress of a live migration. Amounts in bytes."""

    memory_total_bytes: int = 0
    memory_processed_bytes: int = 0
    memory_remaining_bytes: int = 0
    disk_total_bytes: int = 0
    disk_processed_bytes: int = 0
    disk_remaining_bytes: int = 0


class ProgressReport(Value):
    """Progress of a live migration, as its source host reports it. ``percent`` covers memory and disks together."""

    server_uuid: str
    epoch: int
    percent: int = 0
    progress: MigrationProgress = MigrationProgress()


class NewMigration(Value):
    """A new migration. The caller chooses ``uuid``, so that a repeated step creates it only once.

    ``type``: one of TYPES. Without a resize, both flavors are the server's.
    """

    uuid: str
    server_uuid: str
    type: str
    status: str
    user_id: str | None = None
    project_id: str | None = None
    source_compute: str | None = None
    source_node: str | None = None
    dest_compute: str | None = None
    dest_node: str | None = None
    dest_host: str | None = None
    old_flavor: Flavor | None = None
    new_flavor: Flavor | None = None


class Migration(NewMigration):
    """A migration in its current state. ``dest_host`` is the destination's address; user and project are those of the
    server's owner."""

    id: int
    progress: MigrationProgress | None = None
    created_at: Time
    updated_at: Time | None = None

    @property
    def live(self) -> bool:
        """True for a live migration in progress."""
        return self.type == LIVE_MIGRATION and self.status in LIVE_STATUSES


class MigrationQuery(Value):
    """A page of migrations, newest first; None disables a filter. ``host``: the name of source or destination.
    ``changes_*`` are compared with the time of the last change. The page's marker is a migration's uuid."""

    host: str | None = None
    server_uuid: str | None = None
    source_compute: str | None = None
    status: str | None = None
    type: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    changes_since: Time | None = None
    changes_before: Time | None = None
    page: Page = Page()


class ServerMigrations(Value):
    """Migrations of one server, with its owner for the policy check."""

    project_id: str
    user_id: str
    migrations: tuple[Migration, ...] = ()

"""Moves between hosts and resizes: refused at once, or begun."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from nova import errors
from nova.conductor.admission import live_migrations, promises, resizes
from nova.conductor.admission.endings import SourceDown, base
from nova.conductor.engine import quota
from nova.conductor.engine.begin import NoHost, begin, builtins, row_of
from nova.conductor.engine.deps import World
from nova.conductor.steps import moving
from nova.db import ledger, migrations, servers, services, states
from nova.db.engine import Connection
from nova.model import migrations as kinds
from nova.model.flavors import Flavor
from nova.model.migrations import NewMigration
from nova.model.server_orders import EvacuateServer, LiveMigrateServer, MigrateServer, ResizeServer


class NoSuchHost(errors.Invalid):
    code, message = "move.no_such_host", "Compute host {host} could not be found."


class NoSuchTarget(errors.NotFound):
    code, message = "evacuate.no_such_host", "Compute host {host} could not be found."


class HostDown(errors.Invalid):
    code, message = "move.host_down", "Compute service of {host} is unavailable at this time."


class ItsOwnHost(errors.Invalid):
    code, message = "move.own_host", "The target host can't be the same one."


class HostInUse(errors.Invalid):
    code, message = "evacuate.host_in_use", "Compute service of {host} is still in use."


class Plan(NamedTuple):
    """A move that is asked for. ``check`` is called with the server's row, under its lock."""

    action: str
    type: str
    status: str
    uuid: str
    arguments: Mapping[str, Any]
    check: Callable[[Connection, Any], None]
    flavor: Flavor | None = None
    row: Mapping[str, Any] = {}
    owner: quota.Owner | None = None  # of a resize: whose quota it counts in


class Moves:
    """Calls of ConductorRPC."""

    def __init__(self, world: World) -> None:
        self.world = world

    def resize_server(self, order: ResizeServer) -> None:
        row = row_of(self.world, order.uuid)
        flavor = resizes.wanted(self.world, row, order)
        again = self.world.settings.allow_resize_to_same_host

        def check(tx: Connection, row: Any) -> None:
            resizes.check(row, flavor, order)
            promises.check_needs(self.world, flavor, row.image)
            self._check_source(tx, row, SourceDown)
        changes = {"disk_config": order.disk_config} if order.disk_config else {}
        self._begin(Plan("resize", kinds.RESIZE, kinds.PRE_MIGRATING, order.uuid,
                         {"flavor": builtins(flavor), "exclude": [] if again else [row.host]}, check, flavor, changes,
                         quota.owner(self.world, row.project_id, row.user_id)))

    def migrate_server(self, order: MigrateServer) -> None:
        def check(tx: Connection, row: Any) -> None:
            self._check_source(tx, row, SourceDown)
            self._check_target(tx, row, order.host, NoSuchHost, must_be_up=False)
        self._begin(Plan("migrate", kinds.MIGRATION, kinds.PRE_MIGRATING, order.uuid, {"host": order.host}, check))

    def live_migrate_server(self, order: LiveMigrateServer) -> None:
        def check(tx: Connection, row: Any) -> None:
            self._check_source(tx, row, HostDown)
            self._check_target(tx, row, order.host, NoSuchHost)
        arguments = {"host": order.host, "forced": order.force, "block": order.block_migration,
                     "over_commit": order.disk_over_commit}
        entry = self._begin(Plan("live-migration", kinds.LIVE_MIGRATION, kinds.QUEUED, order.uuid, arguments, check))
        if order.wait_for_checks:
            live_migrations.wait_for_checks(self.world, entry)

    def evacuate_server(self, order: EvacuateServer) -> None:
        def check(tx: Connection, row: Any) -> None:
            if self._up(tx, row.host):
                raise HostInUse(host=row.host)
            self._check_target(tx, row, order.host, NoSuchTarget)
        arguments = {"host": order.host, "forced": order.force, "on_shared_storage": order.on_shared_storage,
                     "stay_off": order.stay_off}
        self._begin(Plan("evacuate", kinds.EVACUATION, kinds.ACCEPTED, order.uuid, arguments, check),
                    {"admin_password": order.admin_password})

    # -- hosts

    def _up(self, tx: Connection, host: str) -> bool | None:
        return services.host_up(tx, host, self.world.settings.service_down_time)

    def _check_source(self, tx: Connection, row: Any, down: type[errors.NovaError]) -> None:
        if not self._up(tx, row.host):
            raise down(host=row.host)

    def _check_target(self, tx: Connection, row: Any, host: str | None, unknown: type[errors.NovaError],
                      must_be_up: bool = True) -> None:
        if host is None:
            return
        up = self._up(tx, host)
        if up is None:
            raise unknown(host=host)
        if host == row.host:
            raise ItsOwnHost()
        if must_be_up and not up:
            raise HostDown(host=host)

    # -- beginning

    def _begin(self, plan: Plan, secrets: Mapping[str, Any] | None = None) -> states.Entry:
        """In one transaction of the cell: the journal's row and the move's. What quota counts of a resize is checked
        and written within it: a conductor that dies in between has counted too much (see
        nova.conductor.upkeep.quota_repair)."""
        entry = self.world.cell.transact(lambda tx: self._write(tx, plan))
        self.world.runner.start([entry], secrets=secrets)
        return entry

    def _write(self, tx: Connection, plan: Plan) -> states.Entry:
        entry = begin(self.world, tx, plan.action, plan.uuid, {})
        row = servers.rows_of(tx, [plan.uuid])[plan.uuid]
        if row.host is None:
            raise NoHost(server=plan.uuid)
        plan.check(tx, row)
        metadata, _tags = servers.children(tx, [plan.uuid])
        arguments = {"exclude": [row.host], **plan.arguments, **base(self.world, row),
                     "metadata": metadata.get(plan.uuid, {}), "vm_state": row.vm_state}
        entry = states.argue(tx, entry, arguments)
        if plan.row:
            servers.update(tx, plan.uuid, plan.row)
        migrations.insert(tx, NewMigration(
            uuid=moving.uuid_of(plan.uuid, entry.id), server_uuid=plan.uuid, type=plan.type, status=plan.status,
            user_id=row.user_id, project_id=row.project_id, source_compute=row.host, source_node=row.node,
            old_flavor=row.flavor, new_flavor=plan.flavor or row.flavor))
        if plan.flavor is not None and plan.owner is not None:
            self._count(entry, row, plan.flavor, plan.owner)
        return entry

    def _count(self, entry: states.Entry, row: Any, flavor: Flavor, whose: quota.Owner) -> None:
        """The larger of both flavors, if quota lets it: under the project's lock, as for a create. OverQuota."""
        image = row.image.properties if row.image else {}
        old, new = (self.world.quotas.counted(one, image) for one in (row.flavor, flavor))
        wanted = {name: amount - old.get(name, 0) for name, amount in new.items() if amount > old.get(name, 0)}

        def write(tx: Connection) -> None:
            ledger.lock_owner(tx, row.project_id)
            project, user = quota.effective(self.world, tx, whose, wanted)
            used = self.world.quotas.usage(tx, row.project_id, row.user_id)
            for limits, now in ((project, used["project"]), (user, used["user"])):
                quota.check(limits, now, wanted)
            ledger.count_as(tx, row.uuid, entry.epoch, moving.counted(row, row.flavor, flavor))
        self.world.api.transact(write)


__all__ = ["HostDown", "HostInUse", "ItsOwnHost", "Moves", "NoSuchHost", "NoSuchTarget"]

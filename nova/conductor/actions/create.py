"""Create a server: look up what the request names, decide (:mod:`nova.conductor.actions.create_plan`), write the
ledger's rows and the servers in BUILD, and the workflow that builds them.

All names in a request are resolved before anything is created. An invalid name is therefore a 400 error that names the
field, and not a server in ERROR.
"""

from __future__ import annotations

import random
import uuid as uuids
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nova import context, errors, failures
from nova.conductor import steps, zones
from nova.conductor.actions.checks import keypair, usable_image
from nova.conductor.actions.create_plan import CreateInputs, CreateLimits, CreatePlan, described, plan_of, rows_of
from nova.conductor.actions.volume import create_volumes
from nova.conductor.actions.volume.create_volumes import VolumesOfCreate
from nova.conductor.engine.begin import builtins
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import CreateArguments, Op, Secrets
from nova.conductor.engine.workflow import Retry, Workflow
from nova.conductor.networking.back_end import NetworkRequest
from nova.conductor.quota import quota
from nova.conductor.steps import volume_keys
from nova.db import flavors
from nova.db.host import hosts, services
from nova.db.network import security_groups
from nova.db.quota import ledger
from nova.db.server import new_servers, server_groups, servers, states
from nova.db.server.server_row import ServerRow
from nova.db.server.states import PerServer
from nova.db.sql.engine import Connection, may_be_done
from nova.db.sql.types import utc_now
from nova.gathering import Gathering
from nova.model.base import Scope
from nova.model.block_device import block_devices
from nova.model.quota.quotas import UNLIMITED
from nova.model.server.server_groups import hinted
from nova.model.server.servers import CreatedServers, NewServer
from nova.model.server.states import PowerState, TaskState
from nova.model.volumes import BlockDevice, local


def check_place(deps: Deps, order: NewServer) -> None:
    """Check that the requested host and node exist, with one statement of each cell for each that is named. Raises
    server.NoSuchHost, server.NoSuchNode; Unavailable if a cell that does not answer may have it."""
    if order.host and not deps.cells.any(lambda tx: order.host in services.compute_hosts(tx)):
        raise errors.server.NoSuchHost(host=order.host)
    if order.node:
        wanted = hosts.NodesWanted(host=order.host, name_part=order.node)
        if not deps.cells.any(lambda tx: any(row.name == order.node for row in hosts.node_rows(tx, wanted))):
            raise errors.server.NoSuchNode(node=order.node, where=f" on host {order.host}" if order.host else "")


class Joining(NamedTuple):
    """A server group's key, locked, and how many servers may still join it (None: no limit)."""

    key: int
    remaining: int | None


MOST_AT_ONCE = 1000  # servers of one request
#: Refusals that a redelivered request may meet because its first delivery succeeded.
REPEATED = (errors.daemon.LedgerOpen, errors.OverQuota, errors.server.BadGroup, errors.server.FixedIpInUse,
            errors.volume.NotAvailable)


class Admission(NamedTuple):
    """A request that passed its checks, to be counted."""

    order: NewServer
    plan: CreatePlan
    who: context.RequestContext

    @property
    def project_id(self) -> str:
        """The requesting project's id."""
        return str(self.who.project_id)

    @property
    def user_id(self) -> str:
        """The requesting user's id."""
        return str(self.who.user_id)


def _group_name(one: Admission) -> str:
    """Return the name of the requested server group: groups are locked in one order."""
    return str(hinted(one.order.scheduler_hints) or "")


class Insertion(NamedTuple):
    """The servers of a request, with the security groups (key -> name) and volumes of each."""

    new: new_servers.NewServerRows
    members_of: Mapping[int, str]
    taken: Mapping[str, tuple[BlockDevice, ...]]


class Inserted(NamedTuple):
    """The journal entries of a request, and the rows of its servers by UUID."""

    entries: tuple[states.Entry, ...]
    servers: Mapping[str, ServerRow]


def _by_groups(insertions: Sequence[Insertion]) -> list[tuple[Mapping[int, str], list[Insertion]]]:
    """Return the insertions of each set of security groups."""
    alike: dict[tuple[tuple[int, str], ...], list[Insertion]] = {}
    for one in insertions:
        alike.setdefault(tuple(sorted(one.members_of.items())), []).append(one)
    return [(dict(groups), together) for groups, together in alike.items()]


class _Counting:
    """The quota of some requests in one transaction, which holds the locks of their projects. What one request takes
    counts for the next ones."""

    def __init__(self, deps: Deps, tx: Connection) -> None:
        self.deps, self.tx = deps, tx
        self._used: dict[tuple[str, str], dict[str, dict[str, int]]] = {}
        self._taken: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)  # by (project,) and (project, user)
        self._groups: dict[int, Joining] = {}  # by the id of the admission
        self._joining: Counter[tuple[int, str]] = Counter()  # servers by the group's key and the user

    def _usage(self, one: Admission) -> dict[str, dict[str, int]]:
        """Return the usage of the request's project and (key "user") of its user in it."""
        who = (one.project_id, one.user_id)
        if who not in self._used:
            self._used[who] = self.deps.quotas.usage(self.tx, *who)
        read = self._used[who]
        # without limits of users, usage is the project's at both levels
        taken = {"project": self._taken[who[:1]],
                 "user": self._taken[who[:1] if read["user"] is read["project"] else who]}
        return {level: {name: amounts.get(name, 0) + taken[level][name] for name in {*amounts, *taken[level]}}
                for level, amounts in read.items()}

    def _group(self, one: Admission) -> Joining | None:
        """Lock the requested group; return None if the request names no group.

        Raises server.BadGroup, or OverQuota if fewer than ``min_count`` servers may join.
        """
        name = hinted(one.order.scheduler_hints)
        if name is None:
            return None
        scope = Scope() if one.who.is_admin else Scope(project_id=one.project_id)
        with failures.replaced((errors.server.ServerGroupNotFound, ValueError),
                lambda _: errors.server.BadGroup(group=name)):
            key, count = server_groups.room_for(self.tx, str(uuids.UUID(str(name))), scope, one.user_id)
        limit = one.plan.limits.user.get("server_group_members", UNLIMITED)
        remaining = quota.remaining(limit, count + self._joining[key, one.user_id], 1)
        if remaining is not None and remaining < one.order.min_count:
            raise errors.quota.TooMany(what="too many servers in group", limit=limit)
        return Joining(key, remaining)

    def join_groups(self, opened: Iterable[tuple[Admission, Sequence[str]]]) -> None:
        """Add the servers to the groups that their requests name."""
        for one, server_uuids in opened:
            if (group := self._groups.get(id(one))) is not None:
                server_groups.join(self.tx, group.key, server_uuids, one.user_id)

    def _fitting(self, one: Admission) -> int:
        """Return how many servers quota allows. Raises OverQuota if they are fewer than min_count."""
        used, limits, order = self._usage(one), one.plan.limits, one.order
        both = ((limits.project, used["project"]), (limits.user, used["user"]))
        remaining = [quota.remaining(most.get(name, -1), now.get(name, 0), amount) for most, now in both
                     for name, amount in limits.each.items()]
        count = min([order.max_count, *[most for most in remaining if most is not None]])
        if count < order.min_count:
            for most, now in both:
                quota.check(most, now, {name: order.min_count * amount for name, amount in limits.each.items()})
        if count > MOST_AT_ONCE:
            raise errors.Invalid(f"Invalid max_count: at most {MOST_AT_ONCE} servers can be made by one request.")
        return count

    def take(self, one: Admission) -> int:
        """Count as many servers as fit, of which the ledger has no rows yet, and return their number. Raises OverQuota,
        server.BadGroup."""
        group, count = self._group(one), self._fitting(one)
        if group is not None:
            count = count if group.remaining is None else min(count, group.remaining)
            self._groups[id(one)] = group
            self._joining[group.key, one.user_id] += count
        for who in ((one.project_id,), (one.project_id, one.user_id)):
            self._taken[who].update({name: count * amount for name, amount in one.plan.limits.each.items()})
        return count


class CreateAdmission:
    """The ``create_servers`` call of ConductorRPC: look up all that the request names, decide, and write."""

    def __init__(self, deps: Deps) -> None:
        self.deps, self._volumes = deps, VolumesOfCreate(deps)
        self._open_ledger = Gathering("open ledger", self._open_all, may_be_done, lambda one: one.order.max_count)
        self._insert = Gathering("insert servers", self._insert_all, may_be_done, lambda one: len(one.new.rows))

    def create_servers(self, order: NewServer) -> CreatedServers:
        """Create the servers: they are in the journal when this returns. A redelivered message gets the first result.

        Every check is made before anything is created. Raises server.BadImage, server.BadFlavor, server.BadNetwork,
        server.BadKeypair, aggregate.ZoneNotAvailable and other errors of the kind Invalid; OverQuota; Forbidden without
        a user and a project; Unavailable, with the name of the service that did not answer.
        """
        who = context.current()
        if not who.project_id or not who.user_id:
            raise errors.Forbidden("A create needs a user and a project.")
        plan = None
        try:
            plan = plan_of(order, self._look_up(order, who.user_id, who.project_id), self.deps.settings)
            passphrases = volume_keys.of_user(self.deps, plan.devices)
            admission = Admission(order, plan, who)
            server_uuids = self._open_ledger(admission)
        except REPEATED:
            if made_before := self._made_before(order, plan):
                return made_before
            raise
        return self._write(admission, server_uuids, passphrases)

    # -- look up

    def _look_up(self, order: NewServer, user_id: str, project_id: str) -> CreateInputs:
        """Return the objects that the request names; nothing is changed."""
        image = usable_image(self.deps, order.image_id) if order.image_id else None
        zones.check(self.deps, order.availability_zone)
        if order.host or order.node:
            check_place(self.deps, order)
        whose = quota.owner(self.deps, project_id, user_id)
        with self.deps.api.reading() as tx:
            with failures.replaced(errors.NotFound, lambda _: errors.server.BadFlavor(flavor_id=order.flavor_id)):
                flavor = flavors.get(tx, order.flavor_id, Scope(project_id=project_id))
            key = keypair(tx, user_id, order.key_name)
        disks = block_devices.merged(order.disks, order.volumes, image.properties if image else {}, flavor,
                                     order.unmapped)
        volumes = self._volumes.look_up(disks.volumes)
        about = described(image, volumes)
        each = self.deps.quotas.counted(local(flavor, disks.volumes), about.properties if about else {})
        with self.deps.api.reading() as tx:
            limits = CreateLimits(each, *quota.effective(self.deps, tx, whose, each))
        network = self.deps.networking.admit(NetworkRequest(
            project_id, order.networks, order.security_groups, order.make_network, order.max_count, limits.project,
            order.may_use_external))
        return CreateInputs(flavor, image, about, key, disks.local, volumes, limits, network)

    # -- write

    def _open_all(self, admissions: Sequence[Admission]) -> list[list[str] | errors.NovaError]:
        """Open ledger rows for as many servers of each request as quota allows, between min_count and max_count, in one
        transaction; return their UUIDs. The result is OverQuota for a request of which it allows fewer than
        min_count."""
        def write(tx: Connection) -> list[list[str] | errors.NovaError]:
            for project in sorted({one.project_id for one in admissions}):  # one order: no deadlocks
                ledger.lock_owner(tx, project)
            counting = _Counting(self.deps, tx)
            counted = {id(one): self._counted(counting, one) for one in sorted(admissions, key=_group_name)}
            found = [counted[id(one)] for one in admissions]
            opened = [(one, uuids) for one, uuids in zip(admissions, found, strict=True)
                      if not isinstance(uuids, errors.NovaError)]
            ledger.open_rows(tx, [row for one, uuids in opened for row in self._ledger_rows(one, uuids)])
            counting.join_groups(opened)
            return found
        return self.deps.api.transact(write)

    def _counted(self, counting: _Counting, one: Admission) -> list[str] | errors.NovaError:
        """Return the UUIDs of as many servers as quota and the server group allow."""
        refused: list[errors.NovaError] = []
        with failures.parked(refused.append, on=(errors.OverQuota, errors.server.BadGroup, errors.Invalid)):
            return [_uuid(one.order, index) for index in range(counting.take(one))]
        return refused[0]

    def _ledger_rows(self, one: Admission, server_uuids: Sequence[str]) -> list[dict[str, object]]:
        flavor = one.plan.facts.flavor
        return [{"server_uuid": uuid, "project_id": one.project_id, "user_id": one.user_id, "cell": self.deps.cell_uuid,
                 "vcpus": flavor.vcpus, "memory_mb": flavor.memory_mb, "facts": one.plan.facts,
                 "classes": one.plan.counted} for uuid in server_uuids]

    def _write(self, one: Admission, server_uuids: list[str], passphrases: Secrets) -> CreatedServers:
        """Take the volumes, write the servers with their journal entries, and start to build them."""
        order, plan, reservation = one.order, one.plan, _reservation(one.order)
        taken = self._take_volumes(plan, server_uuids)
        rows = [{**row, "project_id": one.project_id, "user_id": one.user_id, "reservation_id": reservation,
                 "volumes": taken[str(row["uuid"])] or None} for row in rows_of(order, plan, server_uuids)]
        entries = [_entry(self.deps, order, row, one.who, plan.network.group_ids) for row in rows]
        new = new_servers.NewServerRows(rows, entries, order.metadata, order.tags)
        with failures.on_failure(lambda: self._volumes.give_back(taken), on=errors.NovaError):
            made = self._insert(Insertion(new, plan.network.members_of, taken))
        self.deps.runner.start(made.entries, made.servers, {"admin_password": order.admin_password, **passphrases})
        return _result(reservation, server_uuids, plan)

    def _insert_all(self, insertions: Sequence[Insertion]) -> list[Inserted]:
        """Write the servers of some requests in one transaction."""
        def insert(tx: Connection) -> list[Inserted]:
            entries = new_servers.insert(tx, [one.new for one in insertions])
            for members_of, together in _by_groups(insertions):
                security_groups.join_new(tx, members_of, [uuid for one in together for uuid in one.new.uuids])
            for one in insertions:
                create_volumes.written(tx, one.taken)
            rows = servers.rows_of(tx, [uuid for one in insertions for uuid in one.new.uuids])
            return [Inserted(its, {entry.server_uuid: rows[entry.server_uuid] for entry in its}) for its in entries]
        return self.deps.cell.transact(insert)

    def _take_volumes(self, plan: CreatePlan, server_uuids: list[str]) -> Mapping[str, tuple[BlockDevice, ...]]:
        """Reserve the volumes, as the last step that can be refused: the servers' ledger rows are closed again then."""
        def close(tx: Connection) -> None:
            ledger.close(tx, dict.fromkeys(server_uuids, 2**62))
        with failures.on_failure(lambda: self.deps.api.transact(close), on=errors.NovaError):
            return self._volumes.take(plan.devices, server_uuids, plan.zone)

    def _made_before(self, order: NewServer, plan: CreatePlan | None) -> CreatedServers | None:
        """Return the result of the first delivery, if this message is a redelivery. ``plan`` None: what the request
        names is in use meanwhile, so the first servers' rows have the answer."""
        with self.deps.api.reading() as tx:
            known = ledger.opened(tx, [_uuid(order, index) for index in range(min(order.max_count, MOST_AT_ONCE))])
        if not known:
            return None
        if plan is not None:
            return _result(_reservation(order), known, plan)
        rows = self.deps.cells.read(lambda tx: servers.rows_of(tx, known[:1], with_deleted=True))
        row = next((row for found in rows for row in found.values()), None)
        return CreatedServers(reservation_id=_reservation(order), uuids=tuple(known),
                              disk_config=row.disk_config if row else "",
                              security_groups=row.security_groups if row else None)


def _result(reservation: str, server_uuids: Sequence[str], plan: CreatePlan) -> CreatedServers:
    return CreatedServers(reservation_id=reservation, uuids=tuple(server_uuids),
                          disk_config=str(plan.columns["disk_config"]), security_groups=plan.network.security_groups)


def _uuid(order: NewServer, index: int) -> str:
    """Return a server's UUID, which is the same for each delivery of the request."""
    return str(uuids.uuid5(uuids.UUID(order.key), str(index))) if order.key else str(uuids.uuid4())


def _reservation(order: NewServer) -> str:
    """Return the request's reservation id: ``r-`` and eight letters or digits."""
    chosen = random.Random(order.key or None)
    return f"r-{''.join(chosen.choices('abcdefghijklmnopqrstuvwxyz0123456789', k=8))}"


def _entry(deps: Deps, order: NewServer, row: Mapping[str, object], who: context.RequestContext,
           group_ids: tuple[str, ...]) -> dict[str, object]:
    arguments = builtins(CreateArguments(host=order.host, node=order.node, forced=order.forced,
                                         metadata=order.metadata, group_ids=group_ids))
    return {"server_uuid": row["uuid"], "action": "create", "epoch": 1,
            "runner_id": deps.journal.runner_id, "arguments": arguments, "data": {}, "history": (),
            "step": "", "direction": "do", "attempt": 1, "request_id": who.request_id, "user_id": who.user_id,
            "project_id": who.project_id, "finished_at": None, "outcome": None, "fault": None}


def launched(ops: Sequence[Op]) -> Mapping[str, object]:
    """Record the power states that the hosts reported. The default is RUNNING: if a host no longer answers, it had
    already reported the guests as running."""
    reported = {op.uuid: op.progress.power_state for op in ops}
    return {"launched_at": utc_now(), "power_state": PerServer({
        uuid: PowerState.RUNNING.value if state is None else state for uuid, state in reported.items()})}


take_host = steps.SelectNextHost()                              # the selected host first, then its alternates
CREATE_SERVER = Workflow(
    "create",                                                 # a row of model.states.ACTIONS
    steps.AwaitVolumes(),                                     # create and reserve; undo: release, delete the created
    steps.SelectHosts(),                                      # SchedulerRPC.select_hosts: hosts and alternates
    take_host,                                                # --- the steps below depend on the host ---
    steps.PlaceInCell(),                                      # from the entry cell to the host's; one cell: nothing
    steps.ClaimResources(),                                   # one api-db transaction; undo: release
    steps.ConnectVolumes(task=TaskState.BLOCK_DEVICE_MAPPING),  # allow the host to use them; undo: only reserve
    steps.BindNetworks(task=TaskState.NETWORKING),            # addresses; undo: return them
    steps.BuildGuests(task=TaskState.SPAWNING),               # ComputeRPC.build_guests; undo: destroy_guests
    retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
    again_on=(errors.Unavailable,),                           # retry while the scheduler is unavailable
    ending=launched,
    asks=CreateArguments,
)

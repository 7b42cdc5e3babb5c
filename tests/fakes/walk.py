"""A random walk through a living cloud: actions at random, faults at random, invariants after each.

All random choices come from one seed, so that a walk can be repeated (except the timing of threads).
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import sqlalchemy as sa

from nova import context, errors
from nova.db.models import cell as cell_tables
from nova.model.host.aggregates import NewAggregate
from nova.model.host.services import ServiceQuery, ServiceUpdate
from nova.model.server import server_orders as orders
from nova.model.server.servers import NewServer, ServerOrder
from nova.model.server.states import API_NAMES
from tests.fakes.invariants import audited, wrong
from tests.fakes.living_cloud import Killed, LivingCloud
from tests.fakes.small_cloud import DEMO
from tests.fakes.walking_consoles import WalkingConsoles
from tests.fakes.walking_networks import WalkingNetworks

FAULTY = 0.4  # of the actions meet a fault
OPERATED = 0.1  # of the steps are an operator's changes of hosts and aggregates
RATIOS = (0.01, 1.0, 4.0)  # CPU allocation ratios of a host: the first is less than its usage
CROSSING = 0.5  # of cold moves may go to another cell, if there is one
HASTY = 0.1  # of the actions are immediately followed by another one
WATCHED = 0.3  # of the actions have a user who opens a console before, during or after them
MEANWHILE = 0.3  # of the actions have a user who changes the server's networks at the same time
TIMEOUT_S = 0.5  # maximum time until a dead host is restarted
LATE_S = 0.3
GROUPED = 0.3  # of the steps are several requests at the same time, in walks that have such
TOGETHER_S = 60.0
OVERTAKING = ("delete", "hard_reboot", "evacuate")

Act = Callable[["Walk", str], Any]


class Step(NamedTuple):
    """One step and its result, for the report of a failed walk."""

    number: int
    action: str
    server: str
    fault: str
    answer: str

    def __str__(self) -> str:
        return f"{self.number:5} {self.action:20} {self.server[:8]} {self.answer:14} {self.fault}"


def _plain(action: str) -> Act:
    return lambda walk, uuid: walk.cloud.control.order_server(ServerOrder(uuid=uuid, action=action))


def _call(method: str, make: Callable[[Walk, str], Any]) -> Act:
    return lambda walk, uuid: getattr(walk.cloud.control, method)(make(walk, uuid))


def _of_networks(name: str) -> Act:
    return lambda walk, uuid: walk.networks.actions[name](uuid)


def _evacuate(walk: Walk, uuid: str) -> Any:
    """Evacuate a server from a killed host, which is restarted after the action."""
    host = walk.cloud.server(uuid).host
    if host is not None:
        walk.cloud.computes[host].kill()
        walk.lose(host)
    return walk.cloud.control.evacuate_server(orders.EvacuateServer(uuid=uuid))


ACTIONS: dict[str, Act] = {
    **{name: _plain(name) for name in (
        "start", "stop", "soft_reboot", "hard_reboot", "pause", "unpause", "suspend", "resume", "unrescue",
        "trigger_crash_dump", "confirmResize", "revertResize", "shelve", "shelveOffload", "restore", "delete")},
    "rescue": _call("rescue_server", lambda walk, uuid: orders.RescueServer(uuid=uuid, image_id=walk.image())),
    "rebuild": _call("rebuild_server", lambda walk, uuid: orders.RebuildServer(uuid=uuid, image_id=walk.image())),
    "changePassword": _call("change_password", lambda walk, uuid: orders.ChangePassword(uuid=uuid, password="s3cret")),
    "createImage": _call("create_image", lambda walk, uuid: orders.CreateImage(uuid=uuid, name="kept")),
    "createBackup": _call("create_backup", lambda walk, uuid: orders.CreateBackup(
        uuid=uuid, name="daily", backup_type="daily", rotation=walk.rng.randint(0, 2))),
    "unshelve": _call("unshelve_server", lambda walk, uuid: orders.UnshelveServer(uuid=uuid)),
    "resize": _call("resize_server", lambda walk, uuid: orders.ResizeServer(
        uuid=uuid, flavor_id=walk.flavor(), cross_cell=walk.rng.random() < CROSSING)),
    "migrate": _call("migrate_server", lambda walk, uuid: orders.MigrateServer(
        uuid=uuid, host=walk.maybe_host(), cross_cell=walk.rng.random() < CROSSING)),
    "live-migration": _call("live_migrate_server", lambda walk, uuid: orders.LiveMigrateServer(
        uuid=uuid, host=walk.maybe_host())),
    "evacuate": _evacuate,
}
#: Weights of actions; default: 1.
WEIGHTS = {"start": 4, "unpause": 3, "resume": 3, "unrescue": 3, "confirmResize": 4, "revertResize": 3, "unshelve": 4,
           "resize": 3, "migrate": 3, "live-migration": 3}


class Walk:
    def __init__(self, cloud: LivingCloud, seed: int, flavors: tuple[str, ...], images: tuple[str, ...],
                 servers: int = 20, networks: type[WalkingNetworks] = WalkingNetworks, together: int = 1) -> None:
        """``together``: how many requests come at the same time, now and then."""
        self.cloud, self.rng, self.most, self.together = cloud, random.Random(seed), servers, together
        self.flavors, self.images = flavors, images
        self.story: list[Step] = []
        self.answers: Counter[tuple[str, str]] = Counter()
        self.accepted: Counter[str] = Counter()
        self.consoles = WalkingConsoles(cloud, self.rng)
        self.networks = networks(cloud, self.rng)
        self.actions = {**ACTIONS, **{name: _of_networks(name) for name in self.networks.actions}}
        self.weights = {**WEIGHTS, **self.networks.weights}

    # -- choices of actions

    def flavor(self) -> str:
        return self.rng.choice(self.flavors)

    def image(self) -> str:
        return self.rng.choice(self.images)

    def maybe_host(self) -> str | None:
        return self.rng.choice([None, None, *self.cloud.computes])

    def lose(self, host: str) -> None:
        """Set the host's last heartbeat to a time long ago."""
        table = cell_tables.services
        self.cloud.write("cell", sa.update(table).where(table.c.host == host, table.c.binary == "nova-compute")
                         .values(last_seen_at=sa.text("'2000-01-01 00:00:00'")))
        self.cloud.host_changed(host)

    # -- one step

    def step(self) -> None:
        live = self._live()
        if self.rng.random() < OPERATED:
            self._operate()
        elif self.together > 1 and self.rng.random() < GROUPED:
            self._do_together(live)
        elif len(live) < self.most and (not live or self.rng.random() < 0.3):
            self._boot()
        else:
            uuid = self.rng.choice(live)
            if self.rng.random() < WATCHED:
                self.consoles.open(uuid)
            fault = self._arm() if self.rng.random() < FAULTY else ""
            self._do(self._choose(), uuid, fault)
            if self.rng.random() < WATCHED:
                self.consoles.open(uuid)
            if self.networks.meanwhile and self.rng.random() < MEANWHILE:
                self._do(self.rng.choice(self.networks.meanwhile), uuid, "meanwhile")
            if self.rng.random() < HASTY:
                self._do(self.rng.choice(OVERTAKING), uuid, "at once")
        self._heal()
        if found := self._wrong():  # a host that did not report may have run its order: its next report shows it
            time.sleep(LATE_S)
            self.cloud.report_power()
            self.cloud.settle()
            found = self._wrong()
        assert not found, "\n".join([*map(str, self.story[-12:]), *self._last(), *found])

    def _do_together(self, live: list[str]) -> None:
        """Order actions on as many servers at the same time, and create those that are missing; a fault may meet
        them. Half of the groups have one action."""
        fault = self._arm() if self.rng.random() < FAULTY else ""
        chosen = self.rng.sample(live, min(len(live), self.together))
        one = self._choose() if self.rng.random() < 0.5 else None
        calls: list[Callable[[], None]] = [
            functools.partial(self._do, one or self._choose(), uuid, f"together, {fault}") for uuid in chosen]
        calls += [self._boot] * min(self.together - len(chosen), self.most - len(live))
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            for done in [pool.submit(call) for call in calls]:
                done.result(TOGETHER_S)

    def _wrong(self) -> list[str]:
        return [*wrong(self.cloud, self.networks.addresses), *audited(self.cloud), *self.consoles.wrong(),
                *self.networks.wrong()]

    def _operate(self) -> None:
        """Change a host's capacity, or its membership in an aggregate."""
        host, what = self.rng.choice(list(self.cloud.computes)), self.rng.choice(("ratio", "aggregate", "disable"))
        if what == "ratio":
            self.cloud.computes[host].ratio = self.rng.choice(RATIOS)
            self.cloud.computes[host].kill()
        elif what == "aggregate":
            self._aggregate(host)
        else:
            [service] = [one for one in self.cloud.control.list_services(ServiceQuery(host=host))
                         if one.binary == "nova-compute"]
            self.cloud.control.update_service(ServiceUpdate(uuid=service.uuid, disabled=not service.disabled))
        self._tell(what, host, "", "ok")

    def _aggregate(self, host: str) -> None:
        control, name = self.cloud.control, "fast"
        found = [one for one in control.list_aggregates() if one.name == name]
        if not found:
            made = control.create_aggregate(NewAggregate(name=name))
            control.set_aggregate_metadata(made.id, {"cpu_weight_multiplier": "2.0"})
        elif host in found[0].hosts:
            control.remove_aggregate_host(found[0].id, host)
        else:
            control.add_aggregate_host(found[0].id, host)

    def _choose(self) -> str:
        names = list(self.actions)
        return self.rng.choices(names, [self.weights.get(name, 1) for name in names])[0]

    def _boot(self) -> None:
        fault = self._arm() if self.networks.actions and self.rng.random() < FAULTY else ""
        with context.entered(DEMO):
            wanted = NewServer(**{"name": f"vm{len(self.story)}", "flavor_id": self.flavor(), "image_id": self.image(),
                                  "key": self._uuid(), **self.networks.requested()})
            try:
                uuid, answer = self.cloud.control.create_servers(wanted).uuids[0], "ok"
            except errors.NovaError as error:
                if not self.networks.actions or error.kind == "bug":
                    raise
                uuid, answer = "", error.kind
        self._tell("create", uuid, fault, answer)

    def _uuid(self) -> str:
        digits = f"{self.rng.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"

    def _do(self, action: str, uuid: str, fault: str) -> None:
        try:
            with context.entered(DEMO):
                self.actions[action](self, uuid)
            answer = "ok"
            self.accepted[uuid] += action in ACTIONS or action in self.networks.recorded
        except Killed:
            answer = "killed"
        except errors.NovaError as error:
            assert error.kind not in ("bug",), f"{action}: {error.kind} {error.message}"
            answer = error.kind
        self._tell(action, uuid, fault, answer)

    def _tell(self, action: str, uuid: str, fault: str, answer: str) -> None:
        self.answers[action, answer] += 1
        self.story.append(Step(len(self.story), action, uuid, fault, answer))

    # -- faults

    def _arm(self) -> str:
        """Prepare a fault that occurs soon, and return its name."""
        kind = self.rng.choice(("conductor", "compute", "driver", "silence", *self.networks.faults))
        if kind in self.networks.faults:
            return self.networks.arm(kind)
        host = self.rng.choice(list(self.cloud.computes))
        compute, number = self.cloud.computes[host], self.rng.randint(1, 6)
        if kind == "conductor":
            self._kill_conductor_in(number)
            return f"the conductor dies at its point {number}"
        if kind == "compute":
            compute.driver.knobs.countdown(number, "die")
            return f"{host} dies at its call {number}"
        if kind == "driver":
            error = self.rng.choice(("host_refused", "crash", "conflict"))
            compute.driver.knobs.countdown(number, error)
            return f"{host} fails ({error}) at its call {number}"
        compute.silent = True
        return f"{host} is silent"

    def _kill_conductor_in(self, number: int) -> None:
        left = [number]
        runner = self.cloud.deps.runner

        def act(_action: str, _step: str, _when: str) -> None:
            if self.cloud.deps.runner is not runner:
                return
            left[0] -= 1
            if left[0] == 0:
                runner.journal.dead = True
            if runner.journal.dead:
                raise Killed
        self.cloud.on_point = act

    # -- recovery

    def _heal(self) -> None:
        """Wait until dead processes are detected, restart them, and let all operations end."""
        cloud = self.cloud
        revive_at = time.monotonic() + self.rng.choice((0.0, TIMEOUT_S))  # operations keep waiting for a dead host
        end = revive_at + 20
        while cloud.open_operations():
            if cloud.deps.runner.journal.dead:
                cloud.replace_conductor()
            if time.monotonic() > revive_at and (self.networks.troubled or any(
                    one.dead or one.silent for one in cloud.computes.values())):
                self._revive()
            assert time.monotonic() < end, "\n".join(["it does not end:", *map(str, self.story[-8:]), *self._last()])
            cloud.nudge()
        cloud.on_point = lambda action, step, when: None
        self._revive()
        cloud.settle()
        cloud.do_cleanups()
        cloud.report_power()
        cloud.settle()
        self.networks.rest()

    def _revive(self) -> None:
        self.networks.revive()
        for compute in self.cloud.computes.values():
            compute.driver.knobs.clear()
            away, compute.silent = compute.dead or compute.silent, False
            with contextlib.suppress(Killed):  # killed during its start: try again the next time
                if compute.dead:
                    compute.start()
                if away:
                    compute.service.register()
                compute.beat()
        self.cloud.flush()

    def left(self) -> list[str]:
        """Delete all servers, and return the remaining resources of their networks."""
        for uuid in self._live():
            self._do("delete", uuid, "")
        self._heal()
        found = [*wrong(self.cloud, self.networks.addresses), *self.networks.left()]
        return [f"server {uuid} is not gone" for uuid in self._live()] + found

    def _live(self) -> list[str]:
        table = cell_tables.servers
        return [row.uuid for row in self.cloud.rows("cell", sa.select(table.c.uuid).where(table.c.deleted == 0)
                                                    .order_by(table.c.id))]

    def _last(self) -> list[str]:
        """Return the journal of the last step's server."""
        return [f"  {row.action} {row.step} {row.direction} {row.outcome} {row.fault or ''} "
                f"{[event.step + ':' + (event.result or '?') for event in row.history]}"
                for row in self.cloud.journal(self.story[-1].server)[-3:]] if self.story else []

    def unrecorded(self) -> list[str]:
        """Return the servers with fewer recorded than accepted actions."""
        found = []
        for uuid, count in self.accepted.items():
            recorded = sum(1 for row in self.cloud.journal(uuid) if API_NAMES.get(row.action, row.action) != "create")
            if recorded < count:
                found.append(f"{uuid}: {count} actions were taken, {recorded} are recorded")
        return found

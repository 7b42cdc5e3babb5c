"""Synchronization of power states: a host reports them, and either the record or the guest is corrected within moments.

A guest that powered off without an order makes its server SHUTOFF: its user shut it down, or it crashed. A guest that
runs although its server is stopped or soft-deleted is stopped again. A user started it outside nova, or its host was
away when it was stopped, and the owner relies on its not running. A guest that was paused, suspended or resumed changes
its server's state likewise. An order whose host died before answering was carried out, and the owner must be able to
revert it. Servers with a task are left to their operation.

A server that EC2's API set to end with its guest (instance-initiated shutdown behavior: terminate) stays active until
its delete has begun: a host whose report was not answered sends it again. It is deleted only if its host saw the guest
shut down; any other end of the guest only stops it. A crashed guest did not shut itself down. A report of all guests
tells only the state that the host found. For example, all guests are off after a power failure, or missing from a new
disk.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping

from nova import context, errors
from nova.conductor.engine import announce
from nova.conductor.engine.begin import begin
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments
from nova.db.server import reported_states, states
from nova.db.sql.engine import Connection
from nova.model.guest.orders import PowerReport
from nova.model.server.states import PowerState

LOG = logging.getLogger(__name__)

AT_ONCE = 50  # servers stopped for one report; the others follow with the host's next report

#: power state -> the vm_state of a server whose guest is in it
FITTING = {PowerState.SHUTDOWN: "stopped", PowerState.CRASHED: "stopped", PowerState.RUNNING: "active",
           PowerState.PAUSED: "paused", PowerState.SUSPENDED: "suspended"}


def report(deps: Deps, power_report: PowerReport) -> None:
    """Record the states, and stop the guests that should be off: 50 for each report, the others at the host's next
    report."""
    reported = {guest.server_uuid: reported_states.Power(int(guest.power_state), guest.epoch,
                                                FITTING.get(guest.power_state, "")) for guest in power_report.guests}
    if not reported:
        return
    with announce.turning(deps, power_report.host, [uuid for uuid, one in reported.items() if one.now]):
        strays, ending = deps.cell.transact(lambda tx: _note(tx, power_report, reported))
    for uuid in ending:
        _delete(deps, uuid)
    _stop(deps, power_report.host, {uuid: reported[uuid] for uuid in strays[:AT_ONCE]})


def _note(tx: Connection, said: PowerReport, reported: Mapping[str, reported_states.Power]
          ) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Record the states and return (servers to stop again, servers to delete)."""
    seen = {} if said.all_guests else {uuid: one for uuid, one in reported.items() if one.state == PowerState.SHUTDOWN}
    ending = reported_states.ending(tx, said.host, seen)
    rest = {uuid: power for uuid, power in reported.items() if uuid not in ending}
    return reported_states.note_power(tx, said.host, rest) if rest else (), ending


def _delete(deps: Deps, uuid: str) -> None:
    action = "soft_delete" if deps.settings.reclaim_instance_interval > 0 else "delete"
    with context.entered(context.internal()):
        try:
            entry = deps.cell.transact(lambda tx: begin(deps, tx, action, uuid, Arguments()))
        except (errors.WrongState, errors.NotFound):
            return  # another operation began in the meantime
        LOG.info("the guest shut itself down and the server is set to terminate on shutdown; deleting it",
                 extra={"server": uuid})
        deps.runner.start([entry])


def _stop(deps: Deps, host: str, strays: Mapping[str, reported_states.Power]) -> None:
    """Begin each guest's stop as its owner would: it is journaled, and resumed if a host dies in the meantime."""
    for uuid, power in strays.items():
        with context.entered(context.internal()):
            begin = functools.partial(_begin, deps=deps, host=host, uuid=uuid, power=power)
            try:
                entry = deps.cell.transact(begin)
            except (errors.WrongState, errors.NotFound):
                continue  # another operation began in the meantime
            if entry is not None:
                LOG.warning("the server should be off, but its guest runs on host %s; stopping it again", host,
                            extra={"server": uuid})
                deps.runner.start([entry])


def _begin(tx: Connection, deps: Deps, host: str, uuid: str, power: reported_states.Power) -> states.Entry | None:
    action = reported_states.set_running(tx, host, uuid, power)
    return begin(deps, tx, action, uuid, Arguments()) if action else None

"""What hosts say of their guests' power, and what follows: the record is right within a moment, or the guest is.

A guest that went off by itself makes its server SHUTOFF (its user shut it down, or it crashed). One that runs although
its server is stopped, or deleted and kept for a while, is stopped again: somebody started it behind the cloud's back,
or its host was away when it was to be stopped, and its owner counts on its not running. One that was paused or
suspended, or goes on again, turns its server likewise: an order whose host died before it could answer was carried
out, and the owner must be able to take it back. Servers with a task are their operation's.

A server that EC2's API made to end with its guest (instance-initiated shutdown behavior: terminate) stays active until
its delete has begun: a host whose report was not answered sends it again. It is deleted when its host saw the guest
shut down, and only stopped for all else that ends a guest. A guest that crashed did not shut itself down. And a host
that tells of all its guests tells what it found, e.g. all of them off after its power failed, or none on a new disk.
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
from nova.db.server import states
from nova.db.sql.engine import Connection
from nova.model.guest.orders import PowerReport
from nova.model.server.states import PowerState

LOG = logging.getLogger(__name__)

AT_ONCE = 50  # servers stopped for one report; the others' turn comes with the host's next one

#: power state -> the vm_state of a server whose guest has it
FITTING = {PowerState.SHUTDOWN: "stopped", PowerState.CRASHED: "stopped", PowerState.RUNNING: "active",
           PowerState.PAUSED: "paused", PowerState.SUSPENDED: "suspended"}


def report(deps: Deps, power_report: PowerReport) -> None:
    """Write down the states, and stop those guests that should be off: 50 for a report, the others at the host's next
    report."""
    reported = {guest.server_uuid: states.Power(int(guest.power_state), guest.epoch,
                                                FITTING.get(guest.power_state, "")) for guest in power_report.guests}
    if not reported:
        return
    with announce.turning(deps, power_report.host, [uuid for uuid, one in reported.items() if one.now]):
        strays, ending = deps.cell.transact(lambda tx: _note(tx, power_report, reported))
    for uuid in ending:
        _delete(deps, uuid)
    _stop(deps, power_report.host, {uuid: reported[uuid] for uuid in strays[:AT_ONCE]})


def _note(tx: Connection, said: PowerReport, reported: Mapping[str, states.Power]
          ) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(servers to stop again, servers to delete)."""
    seen = {} if said.all_guests else {uuid: one for uuid, one in reported.items() if one.state == PowerState.SHUTDOWN}
    ending = states.ending(tx, said.host, seen)
    rest = {uuid: power for uuid, power in reported.items() if uuid not in ending}
    return states.note_power(tx, said.host, rest) if rest else (), ending


def _delete(deps: Deps, uuid: str) -> None:
    action = "soft_delete" if deps.settings.reclaim_instance_interval > 0 else "delete"
    with context.entered(context.internal()):
        try:
            entry = deps.cell.transact(lambda tx: begin(deps, tx, action, uuid, Arguments()))
        except (errors.WrongState, errors.NotFound):
            return  # something was ordered meanwhile
        LOG.info("its guest shut itself down, and the server was made to be deleted then: it is deleted",
                 extra={"server": uuid})
        deps.runner.start([entry])


def _stop(deps: Deps, host: str, strays: Mapping[str, states.Power]) -> None:
    """Order each one's stop, as its owner would: it is in the journal, and a host that dies meanwhile resumes it."""
    for uuid, power in strays.items():
        with context.entered(context.internal()):
            begin = functools.partial(_begin, deps=deps, host=host, uuid=uuid, power=power)
            try:
                entry = deps.cell.transact(begin)
            except (errors.WrongState, errors.NotFound):
                continue  # something was ordered meanwhile
            if entry is not None:
                LOG.warning("the server should be off, and its guest runs on %s: it is stopped again", host,
                            extra={"server": uuid})
                deps.runner.start([entry])


def _begin(tx: Connection, deps: Deps, host: str, uuid: str, power: states.Power) -> states.Entry | None:
    action = states.set_running(tx, host, uuid, power)
    return begin(deps, tx, action, uuid, Arguments()) if action else None

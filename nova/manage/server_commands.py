"""``nova-manage server show``: a server's state, the actions that are possible now, and why the others are not.

The conductor's admission uses the same tables (:mod:`nova.model.server.states`,
:mod:`nova.model.server.action_restrictions`), so operators need not try an action to learn that it is refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import NamedTuple

from nova.conf._options import Options
from nova.manage.command import JSON, Command, ConductorOf, Table, argument
from nova.manage.output import write_json
from nova.model.base import Value
from nova.model.numa import pci_aliases
from nova.model.numa.topology import PciRequest
from nova.model.server import states
from nova.model.server.action_restrictions import built_with, restriction
from nova.model.server.servers import ServerDetail, ServerQuery
from nova.model.server.states import ACTIONS, ON_ITS_HOST, Action
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]

#: Actions that start automatically, or as a part of another one: not available to users.
INNER = frozenset({"create", "create_image_stopped", "stop_deleted", "extend_volume", "snapshot_volume",
                   "merge_volume_snapshot", "live_migration_cancel", "live_migration_force_complete"})
#: Actions that the conductor does not start, or that fail, while the server's host is down.
FROM_ITS_HOST = ON_ITS_HOST | {"resize", "migrate", "live-migration"}
UP = frozenset({"UP", "MAINTENANCE"})  # a host's status while its nova-compute answers


class Possibility(Value):
    """An action. ``why_not``: why it is not possible now; empty if it is."""

    action: str
    why_not: str = ""


class ServerTrace(Value):
    uuid: str
    name: str
    vm_state: str
    task_state: str | None = None
    host: str | None = None
    host_status: str = ""
    locked: bool = False
    actions: tuple[Possibility, ...] = ()


class _Asked(NamedTuple):
    server: ServerDetail
    action: Action
    aliases: Mapping[str, PciRequest]


def _state(asked: _Asked) -> str:
    server = asked.server
    found = states.refusal(asked.action, server.vm_state, server.task_state, server.launched_at is not None)
    return f"its {found.attribute} is {found.value}" if found is not None else ""


def _built(asked: _Asked) -> str:
    found = restriction(asked.action.name, built_with(asked.server, asked.aliases))
    return f"it {found}" if found is not None else ""


def _place(asked: _Asked) -> str:
    server, name = asked.server, asked.action.name
    if server.host is None:
        return "it is on no host" if asked.action.needs_host else ""
    is_up = server.host_status in UP
    if name == "evacuate" and is_up:
        return f"nova-compute on {server.host} is up: only servers of a host that is down can be evacuated"
    return f"nova-compute on {server.host} is down" if name in FROM_ITS_HOST and not is_up else ""


def _lock(asked: _Asked) -> str:
    if not (asked.server.locked and asked.action.refused_when_locked):
        return ""
    return f"it is locked by {asked.server.locked_by}: unlock it (administrators may act anyway)"


#: In the order of the output: the most permanent reasons come first.
REASONS: tuple[Callable[[_Asked], str], ...] = (_built, _state, _place, _lock)


def _why_not(asked: _Asked) -> str:
    return "; ".join(filter(None, (reason(asked) for reason in REASONS)))


def story(server: ServerDetail, aliases: Mapping[str, PciRequest]) -> ServerTrace:
    """Return the server's state and its possible actions. ``aliases``: ``[pci]alias`` by name."""
    actions = tuple(Possibility(action=name, why_not=_why_not(_Asked(server, one, aliases)))
                    for name, one in ACTIONS.items() if name not in INNER)
    return ServerTrace(uuid=server.uuid, name=server.name, vm_state=str(server.vm_state), host=server.host,
                       task_state=str(server.task_state) if server.task_state else None,
                       host_status=server.host_status, locked=server.locked, actions=actions)


def show(shown: ServerTrace, say: Say, table: Table) -> None:
    """Print a line about the server, and a row for each action."""
    task = f", {shown.task_state}" if shown.task_state else ""
    status = shown.host_status or "no nova-compute is registered there"
    place = f"on {shown.host} ({status})" if shown.host else "on no host"
    say(f"{shown.uuid}  {shown.name}  {shown.vm_state}{task}  {place}{'  locked' if shown.locked else ''}")
    table(("Action", "Possible", "Why not"),
          [(one.action, "no" if one.why_not else "yes", one.why_not) for one in shown.actions])


def actions(conductor_of: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    def run(options: Options, given: argparse.Namespace) -> int:
        server = _read(conductor_of(options), given.server)
        shown = story(server, pci_aliases.parse(options.pci.alias))
        if given.json:
            return write_json(shown)
        show(shown, say, table)
        return 0
    return {"show": Command(run, "show a server's state, host, and the actions that are possible now, or why not", (
        argument("server", metavar="UUID"), JSON))}


def _read(conductor: ConductorRPC, uuid: str) -> ServerDetail:
    """Return the server. Raises server.NotFound; Unavailable."""
    return conductor.get_server(ServerQuery(uuid=uuid, as_kept=True))

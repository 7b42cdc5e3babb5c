"""``nova-manage request show``: the history of a request, step by step, and why scheduling found no valid host."""

from __future__ import annotations

from collections.abc import Callable

from nova.manage.command import Table
from nova.manage.output import write_json
from nova.model.server.actions import InstanceAction, PlacementTrace
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]

DETAILS = 200  # characters of a step's failure


def show(conductor: ConductorRPC, name: str, say: Say, table: Table) -> int:
    """Print the operations of a request or server. Return 1 if it has no recorded operation."""
    found = conductor.get_request(name)
    if not found:
        say(f"Request or server {name} has no recorded operation. The request may have been refused immediately, or is "
            "older than the retention time.")
        return 1
    for one in found:
        _operation(one, say, table)
    return 0


def show_json(conductor: ConductorRPC, name: str) -> int:
    """Print the operations as a JSON list. Return 1 if it is empty."""
    found = conductor.get_request(name)
    write_json(found)
    return 0 if found else 1


def _operation(one: InstanceAction, say: Say, table: Table) -> None:
    end = one.message or ("running" if one.finished_at is None else "done")
    say(f"{one.action}  server {one.server_uuid}  user {one.user_id}  project {one.project_id}  {one.request_id}")
    say(f"  began {one.started_at}  {'ended ' + str(one.finished_at) if one.finished_at else 'not ended'}  {end}")
    say(f"  trace {one.trace}")
    table(("  step", "attempt", "host", "began", "ms", "outcome", "why"),
          [(f"  {event.step}", event.attempt, event.host, event.started_at.time(), event.duration_ms,
            event.result or "running", (event.details or "")[:DETAILS]) for event in one.events])
    if one.fault:
        say(f"  fault: {one.fault}")
    if one.placement is not None:
        _placement(one.placement, say, table)


def _placement(trace: PlacementTrace, say: Say, table: Table) -> None:
    for what, words in trace.requirements.items():
        say(f"  requested {what}: {words}")
    if trace.tried:
        say(f"  hosts tried, in order: {', '.join(trace.tried)}" +
            (f"; alternates left: {', '.join(trace.left)}" if trace.left else ""))
    elif trace.left:
        say(f"  hosts selected: {', '.join(trace.left)}")
    if trace.no_host is None:
        return
    say(f"  no valid host among {trace.no_host.asked}:")
    table(("  filter", "hosts removed", "why", "nearest miss"),
          [(f"  {refusal.filter}", refusal.hosts,
            ", ".join(f"{reason} {count}" for reason, count in refusal.reasons.items()), refusal.nearest)
           for refusal in trace.no_host.refusals])
    if trace.no_host.details:
        say(f"  {trace.no_host.details}")

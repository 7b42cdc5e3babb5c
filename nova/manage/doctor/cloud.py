"""What the conductor knows of the whole cloud: clocks, cleanups, hosts, operations, capacity."""

from __future__ import annotations

import collections
import datetime

from nova import errors
from nova.cmd.tool_ending import described
from nova.conf.base import Options
from nova.manage.doctor.finding import BAD, NAMED, OK, WARN, Finding, asked, is_host, some, unanswered
from nova.model.volumes import LOST_AT_CINDER, UNKNOWN_HERE

SKEW_S = 5.0
COMPARED = 50  # uses of volumes, each run of the doctor
STILL_MIN, LATELY_H = 30, 24


def clock(options: Options) -> Finding:
    """This one against the database's, which decides who is up; and those of daemons against their conductor's, as
    heartbeats told them."""
    from nova.manage.doctor.services import the_bus
    from nova.model.base import utcnow
    from nova.model.host.services import ServiceQuery
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.contracts.conductor_host import ConductorHostRPC

    try:
        bus, _option = the_bus(options)
        now = bus.client(ConductorHostRPC).known_host(options.host).now if is_host(options) \
            else bus.client(ConductorRPC).get_clock()
    except errors.NovaError as error:
        return unanswered(error)
    skew = abs((utcnow() - now).total_seconds())
    if skew > SKEW_S:
        return Finding(BAD, f"this clock is {skew:.1f} s away from the database's", "run an NTP client on both")
    found = () if is_host(options) else bus.client(ConductorRPC).list_services(ServiceQuery(hidden=True))
    off = [f"{one.binary} on {one.host} ({one.clock_off_s:+.1f} s)" for one in found
           if one.up and one.clock_off_s is not None]
    if off:
        return Finding(WARN, f"clocks differ from the conductors': {some(off)}",
                       "run an NTP client there: orders that seem to come too late are refused")
    return Finding(OK, f"this clock agrees with the database's ({skew:.1f} s)")


def cleanups(options: Options) -> Finding:
    """What is to be cleaned up on hosts that could not be reached: it blocks nothing, but resources stay claimed."""
    found = asked(options, lambda conductor: conductor.list_debts(None))
    if isinstance(found, Finding):
        return found
    if not found:
        return Finding(OK, "no cleanup is pending")
    counts = collections.Counter(one.host for one in found)
    named = ", ".join(f"{host} ({count})" for host, count in sorted(counts.items())[:NAMED])
    more = f" and {len(counts) - NAMED} more" if len(counts) > NAMED else ""
    return Finding(WARN, f"{len(found)} cleanups wait for hosts that could not be reached: {named}{more}",
                   "start nova-compute there; for a host that is gone for good: nova-manage cleanup list")


def strangers(options: Options) -> Finding:
    """What hosts and the ledger have that no record explains: it takes room, and nobody pays for it."""
    found = asked(options, lambda conductor: conductor.list_strangers(False))
    if isinstance(found, Finding):
        return found
    if not found:
        return Finding(OK, "records explain everything that hosts reported and the ledger has")
    counts = collections.Counter(f"{one.kind} on {one.host}" for one in found)
    return Finding(WARN, f"{len(found)} orphans, which no record explains: "
                   f"{some([f'{count} {what}' for what, count in sorted(counts.items())])}",
                   "nova-manage orphan list says why; nova-manage orphan remove ID")


def attachments(options: Options) -> Finding:
    """Whether servers' records and Cinder say the same of their volumes. One question of Cinder a server, of so many
    servers a run, each run of others."""
    found = asked(options, lambda conductor: conductor.compare_attachments(COMPARED))
    if isinstance(found, Finding):
        return found
    looked = f"{found.servers} servers{'' if found.whole else ', each time others,'}"
    if not found.differences:
        return Finding(OK, f"Cinder and the records of {looked} agree about their volumes")
    words = {LOST_AT_CINDER: "Cinder has no attachment", UNKNOWN_HERE: "Cinder has an attachment that no record has"}
    named = some([f"{words[one.kind]} (server {one.server_uuid}, volume {one.volume_id})" for one in found.differences])
    count = len(found.differences)
    return Finding(WARN, f"Cinder and the records of {looked} differ about {count} attachments: {named}",
                   "openstack server reboot --hard SERVER: its guest has what both say then; of a server that is off, "
                   "see openstack volume attachment list")


def hosts(options: Options) -> Finding:
    """Compute hosts that are down, or out of use: a drain that nobody took back is easily forgotten."""
    from nova.model.host.services import ServiceQuery

    found = asked(options, lambda conductor: conductor.list_services(ServiceQuery(binary="nova-compute")))
    if isinstance(found, Finding):
        return found
    down = [one.host for one in found if not one.up]
    unused = [f"{one.host} ({one.disabled_reason or 'no reason given'})" for one in found if one.disabled]
    if len(down) == len(found):
        return Finding(BAD, f"no compute host is up: {some(down) if down else 'none has registered'}",
                       "start nova-compute there, and look at the last line of its log")
    said = [f"{len(named)} {what}: {some(named)}" for named, what in ((down, "down"), (unused, "disabled")) if named]
    if not said:
        return Finding(OK, f"all {len(found)} compute hosts are up and enabled")
    cures = (["start nova-compute there, or evacuate its servers"] if down else []) + \
        (["nova-manage host undrain HOST when its maintenance is over"] if unused else [])
    return Finding(WARN, f"of {len(found)} compute hosts " + "; ".join(said), "; ".join(cures))


def enrolled(options: Options) -> Finding:
    """Hosts that an operator has to look at: that claim too much to be believed, or whose secret no key opens."""
    from nova.model.placement import room

    found = asked(options, lambda conductor: conductor.list_enrolled_hosts())
    if isinstance(found, Finding):
        return found
    mute = [one.host for one in found if not one.readable]
    grown = [one.host for one in found if room.beyond(one.accepted_room, one.claimed_room)]
    if mute:
        return Finding(BAD, f"no key of [conductor]host_secret_key opens the secret of {some(mute)}",
                       "put the key that wrapped it behind the first one, or enroll the host again")
    if grown:
        return Finding(WARN, f"more than twice of what they had at first is claimed by {some(grown)}, and not used",
                       "nova-manage host list shows what; nova-manage host accept HOST, if it is true")
    return Finding(OK, f"{len(found)} hosts are enrolled")


def tasks(options: Options) -> Finding:
    """Operations that have come no further for long: their servers' rows are written with each step."""
    from nova.model.base import utcnow
    from nova.model.server.servers import Condition, ServerListQuery
    from nova.model.server.states import TaskState

    busy = Condition(column="task_state", op="in", values=tuple(task.value for task in TaskState))
    found = asked(options, lambda conductor: conductor.list_servers(ServerListQuery(
        conditions=(busy,), soft_deleted=True, sort=(("updated_at", "asc"),),
        changes_before=utcnow() - datetime.timedelta(minutes=STILL_MIN))).servers)
    if isinstance(found, Finding):
        return found
    if not found:
        return Finding(OK, f"no operation stands still for more than {STILL_MIN} minutes")
    named = some([f"{one.uuid} ({one.task_state}{' on ' + one.host if one.host else ''})" for one in found])
    return Finding(WARN, f"{len(found)} operations came no further for {STILL_MIN} minutes: {named}",
                   "large disks may take that long; else look at the host's log, and openstack server event list ID")


def failures(options: Options) -> Finding:
    """Servers that turned to ERROR lately, and why the newest did."""
    from nova.model.base import utcnow
    from nova.model.server.servers import Condition, ServerListQuery

    found = asked(options, lambda conductor: conductor.list_servers(ServerListQuery(
        conditions=(Condition(column="vm_state", value="error"),), sort=(("updated_at", "desc"),),
        changes_since=utcnow() - datetime.timedelta(hours=LATELY_H))).servers)
    if isinstance(found, Finding):
        return found
    if not found:
        return Finding(OK, f"no server turned to ERROR in the last {LATELY_H} hours")
    why = next((one.fault.message for one in found if one.fault), "")
    return Finding(WARN, f"{len(found)} servers turned to ERROR in the last {LATELY_H} hours: "
                   f"{some([one.uuid for one in found])}" + (f"; the newest: {why}" if why else ""),
                   "openstack server show ID, and nova-manage request show REQ_ID, say why")


def capacity(options: Options) -> Finding:
    """Hosts that gave more than they have by now: they shrank, or their ratio did."""
    from nova.cmd.conductor import databases as both
    from nova.db.placement import audits

    if not (options.database.connection and options.api_database.connection):
        return Finding(OK, "what hosts gave is looked at on a conductor's host")
    try:
        with both(options)[0].reading() as tx:
            found = audits.overused(tx)
    except errors.NovaError as error:
        return Finding(WARN, f"what hosts gave cannot be read: {described(error)}", "see the line 'database'")
    if not found:
        return Finding(OK, "no host gave more than it has")
    named = some([f"{one.host} ({one.used} of {one.capacity} {one.resource_class})" for one in found])
    return Finding(WARN, f"these gave more than they have, and take no more: {named}",
                   "nova-manage host drain HOST, or a larger allocation ratio there")

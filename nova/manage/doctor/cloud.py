"""Doctor checks of the whole cloud, through the conductor: clocks, cleanups, hosts, operations, capacity."""

from __future__ import annotations

import collections
import datetime

from nova import errors
from nova.cmd.tool_ending import described
from nova.conf._options import Options
from nova.manage.doctor.finding import BAD, NAMED, OK, WARN, Finding, asked, is_host, some, unanswered
from nova.model.volumes import LOST_AT_CINDER, UNKNOWN_HERE

SKEW_S = 5.0
COMPARED = 50  # servers whose volume attachments are compared in each run
STILL_MIN, LATELY_H = 30, 24


def clock(options: Options) -> Finding:
    """Compare this clock with the database's, which decides whether services are up, and the services' clocks with
    their conductor's, as reported in heartbeats."""
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
        return Finding(BAD, f"this clock differs from the database's by {skew:.1f} s", "run an NTP client on both")
    found = () if is_host(options) else bus.client(ConductorRPC).list_services(ServiceQuery(hidden=True))
    off = [f"{one.binary} on {one.host} ({one.clock_off_s:+.1f} s)" for one in found
           if one.up and one.clock_off_s is not None]
    if off:
        return Finding(WARN, f"clocks differ from the conductors': {some(off)}",
                       "run an NTP client there: hosts refuse orders that seem to be late")
    return Finding(OK, f"this clock agrees with the database's ({skew:.1f} s)")


def cleanups(options: Options) -> Finding:
    """Report pending cleanups on hosts that could not be reached: they block nothing, but resources stay claimed."""
    found = asked(options, lambda conductor: conductor.list_debts(None))
    if isinstance(found, Finding):
        return found
    if not found:
        return Finding(OK, "no cleanup is pending")
    counts = collections.Counter(one.host for one in found)
    named = ", ".join(f"{host} ({count})" for host, count in sorted(counts.items())[:NAMED])
    more = f" and {len(counts) - NAMED} more" if len(counts) > NAMED else ""
    return Finding(WARN, f"{len(found)} cleanups wait for hosts that could not be reached: {named}{more}",
                   "start nova-compute there; for a removed host: nova-manage cleanup list")


def strangers(options: Options) -> Finding:
    """Report orphans, guests and allocations without a record: they use capacity that no project is charged for."""
    found = asked(options, lambda conductor: conductor.list_strangers(False))
    if isinstance(found, Finding):
        return found
    if not found:
        return Finding(OK, "no orphans: everything that hosts reported, and all allocations, have a record")
    counts = collections.Counter(f"{one.kind} on {one.host}" for one in found)
    return Finding(WARN, f"{len(found)} orphans without a record: "
                   f"{some([f'{count} {what}' for what, count in sorted(counts.items())])}",
                   "see nova-manage orphan list for the reasons; nova-manage orphan remove ID")


def attachments(options: Options) -> Finding:
    """Compare the attachments in servers' records with Cinder's. Each run asks Cinder once for each of a limited number
    of servers, and the next run continues with other servers."""
    found = asked(options, lambda conductor: conductor.compare_attachments(COMPARED))
    if isinstance(found, Finding):
        return found
    looked = f"{found.servers} servers{'' if found.whole else ' (others in each run)'}"
    if not found.differences:
        return Finding(OK, f"Cinder and the records of {looked} agree about their volumes")
    words = {LOST_AT_CINDER: "Cinder has no attachment", UNKNOWN_HERE: "Cinder has an attachment that no record has"}
    named = some([f"{words[one.kind]} (server {one.server_uuid}, volume {one.volume_id})" for one in found.differences])
    count = len(found.differences)
    return Finding(WARN, f"Cinder and the records of {looked} differ about {count} attachments: {named}",
                   "openstack server reboot --hard SERVER attaches to the guest what both agree on; for a stopped "
                   "server, see openstack volume attachment list")


def hosts(options: Options) -> Finding:
    """Report compute hosts that are down or disabled: a drain that was never undone is easily forgotten."""
    from nova.model.host.services import ServiceQuery

    found = asked(options, lambda conductor: conductor.list_services(ServiceQuery(binary="nova-compute")))
    if isinstance(found, Finding):
        return found
    down = [one.host for one in found if not one.up]
    unused = [f"{one.host} ({one.disabled_reason or 'no reason given'})" for one in found if one.disabled]
    if len(down) == len(found):
        return Finding(BAD, f"no compute host is up: {some(down) if down else 'none has registered'}",
                       "start nova-compute there, and check the last line of its log")
    said = [f"{len(named)} {what}: {some(named)}" for named, what in ((down, "down"), (unused, "disabled")) if named]
    if not said:
        return Finding(OK, f"all {len(found)} compute hosts are up and enabled")
    cures = (["start nova-compute there, or evacuate its servers"] if down else []) + \
        (["nova-manage host undrain HOST when its maintenance is over"] if unused else [])
    return Finding(WARN, f"of {len(found)} compute hosts " + "; ".join(said), "; ".join(cures))


def enrolled(options: Options) -> Finding:
    """Report hosts whose reported capacity needs an operator's confirmation, or whose secret no key decrypts."""
    from nova.model.placement import accepted_capacity

    found = asked(options, lambda conductor: conductor.list_enrolled_hosts())
    if isinstance(found, Finding):
        return found
    mute = [one.host for one in found if not one.readable]
    grown = [one.host for one in found if accepted_capacity.beyond(one.accepted_room, one.claimed_room)]
    if mute:
        return Finding(BAD, f"no key of [conductor]host_secret_key decrypts the secret of {some(mute)}",
                       "add the key that encrypted it after the first key, or enroll the host again")
    if grown:
        return Finding(WARN, f"more than twice their first capacity is reported by {some(grown)}; it is not used",
                       "see nova-manage host list; if the report is correct: nova-manage host accept HOST")
    return Finding(OK, f"{len(found)} hosts are enrolled")


def tasks(options: Options) -> Finding:
    """Report operations without progress for a long time: each step updates the row of its server."""
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
        return Finding(OK, f"no operation has been without progress for more than {STILL_MIN} minutes")
    named = some([f"{one.uuid} ({one.task_state}{' on ' + one.host if one.host else ''})" for one in found])
    return Finding(WARN, f"{len(found)} operations made no progress for {STILL_MIN} minutes: {named}",
                   "large disks may take that long; else check the host's log, and openstack server event list ID")


def failures(options: Options) -> Finding:
    """Report servers that went to ERROR recently, and the cause of the newest."""
    from nova.model.base import utcnow
    from nova.model.server.servers import Condition, ServerListQuery

    found = asked(options, lambda conductor: conductor.list_servers(ServerListQuery(
        conditions=(Condition(column="vm_state", value="error"),), sort=(("updated_at", "desc"),),
        changes_since=utcnow() - datetime.timedelta(hours=LATELY_H))).servers)
    if isinstance(found, Finding):
        return found
    if not found:
        return Finding(OK, f"no server went to ERROR in the last {LATELY_H} hours")
    why = next((one.fault.message for one in found if one.fault), "")
    return Finding(WARN, f"{len(found)} servers went to ERROR in the last {LATELY_H} hours: "
                   f"{some([one.uuid for one in found])}" + (f"; the newest: {why}" if why else ""),
                   "see openstack server show ID, and nova-manage request show REQ_ID")


def capacity(options: Options) -> Finding:
    """Report hosts with more allocations than capacity: the host, or its allocation ratio, shrank."""
    from nova.cmd.conductor_databases import databases as both
    from nova.db.placement import audits

    if not (options.database.connection and options.api_database.connection):
        return Finding(OK, "allocations are checked on a conductor's host")
    try:
        with both(options)[0].reading() as tx:
            found = audits.overused(tx)
    except errors.NovaError as error:
        return Finding(WARN, f"allocations cannot be read: {described(error)}", "see the line 'database'")
    if not found:
        return Finding(OK, "no host has more allocations than capacity")
    named = some([f"{one.host} ({one.used} of {one.capacity} {one.resource_class})" for one in found])
    return Finding(WARN, f"these have more allocations than capacity, and accept no more: {named}",
                   "nova-manage host drain HOST, or a larger allocation ratio there")

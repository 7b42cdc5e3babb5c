"""Usage audits: notify about every server that ran in a period (``compute.instance.exists``), one audit for each
compute host and period.

One conductor takes the host's row in ``usage_audits``, and holds it by its lease. A process that dies half way leaves
RUNNING, and the next run of any conductor repeats that host. So a server may be notified twice, but is never left out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

import msgspec

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.db.quota import usage_audits
from nova.db.server import servers
from nova.db.server.server_row import ServerRow
from nova.model.base import Time, utcnow
from nova.model.quota import periods
from nova.model.quota.usage import DONE, HostAudit

LOG = logging.getLogger(__name__)

PAGE = 200


def run(deps: Deps, now: Time | None = None) -> int:
    """Audit the last complete period, if audits are enabled. Returns the number of hosts that this run completed."""
    settings = deps.settings
    if not settings.instance_usage_audit:
        return 0
    period = periods.last_complete(settings.instance_usage_audit_period, now or utcnow())
    runner_id = deps.journal.runner_id
    with deps.cell.reading() as tx:
        hosts = usage_audits.open_hosts(tx, period, runner_id)
    done = 0
    try:
        for host in hosts:
            done += _audit_host(deps, host, period, runner_id)
    except errors.Unavailable as error:  # bills depend on these: the host's row stays RUNNING, and is repeated
        LOG.warning("the usage audit of %d hosts continues later: %s", len(hosts) - done, error)
        return done
    return done


def _audit_host(deps: Deps, host: str, period: usage_audits.Period, runner_id: int) -> bool:
    """Audit one host. True if this run has written the host's DONE."""
    if not deps.cell.transact(lambda tx: usage_audits.take(tx, host, period, runner_id)):
        return False
    started, audit, last = time.monotonic(), HostAudit(host=host), 0
    while True:
        with deps.cell.reading() as tx:
            rows = usage_audits.servers_of(tx, host, period, last, PAGE)
            metadata, _tags = servers.children(tx, [row.uuid for row in rows])
        failed = sum(not _notified(deps, row, period, metadata.get(row.uuid, {})) for row in rows)
        audit = msgspec.structs.replace(audit, servers=audit.servers + len(rows), errors=audit.errors + failed)
        if len(rows) < PAGE:
            break
        last = rows[-1].id
        if not _write(deps, audit, period, runner_id):
            return False
    seconds = time.monotonic() - started
    message = f"Instance usage audit ran for host {host}, {audit.servers} instances in {seconds:.2f} seconds."
    return _write(deps, msgspec.structs.replace(audit, state=DONE, message=message), period, runner_id)


def _write(deps: Deps, audit: HostAudit, period: usage_audits.Period, runner_id: int) -> bool:
    return deps.cell.transact(lambda tx: usage_audits.write(tx, audit, period, runner_id))


def _notified(deps: Deps, row: ServerRow, period: usage_audits.Period, metadata: Mapping[str, str]) -> bool:
    """Send a server's notification. False, with a line in the log, if it cannot be created: the others are still sent.
    Raises Unavailable if no notification can be sent now."""
    with failures.keep_running(LOG, "could not send the server's exists notification", but=errors.Unavailable,
            extra={"server": row.uuid}):
        deps.notifier.exists(row, *period, metadata)
        return True
    return False

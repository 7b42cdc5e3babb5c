"""Doctor check of the cloud's recorded security mode."""

from __future__ import annotations

from nova.conf._options import Options
from nova.conf._security_mode import asked_mode
from nova.db.host import security
from nova.manage.databases import synced
from nova.manage.doctor.finding import OK, WARN, Finding
from nova.model.security.security_modes import HOST_GAINS, SecurityMode


def security_mode(options: Options) -> Finding:
    """Report the cloud's mode, and what an attacker gains in it, on hosts with database access. On other hosts, report
    the mode that this configuration selects."""
    asked = asked_mode(options)
    if not options.database.connection:
        return Finding(OK, f"this configuration selects {asked} mode: {HOST_GAINS[asked]}")
    with synced(options, "cell").reading() as tx:
        recorded = security.mode(tx)
    if recorded is None:
        return Finding(OK, f"no conductor has recorded a mode; this configuration selects {asked} mode")
    said = f"{recorded} mode: {HOST_GAINS[recorded]}"
    if recorded is asked:
        return Finding(OK, said)
    if recorded is SecurityMode.BOUNDED:
        return Finding(WARN, f"{said}. This configuration selects {asked} mode, with which conductors do not start",
                       "set the options of bounded mode; see 'Security modes' in doc/security.rst")
    return Finding(WARN, f"{said}. This configuration selects {asked} mode",
                   "move each host: nova-manage host isolate HOST; then all: nova-manage host isolate --all")

"""``nova-status upgrade check``: whether an upgrade to this release may begin, or is complete.

Names of checks, table and JSON are as upstream's, for tools that read them.
"""

from __future__ import annotations

import enum
import json
import textwrap
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nova.conf.base import Options
from nova.conf.network import neutron_in_use
from nova.db.host import enrolments, hosts
from nova.db.host.services import COMPUTE, RunningRelease, releases
from nova.db.schema import migrate
from nova.db.server import servers
from nova.manage.databases import serving
from nova.manage.doctor import services as doctor_services
from nova.manage.doctor import written
from nova.manage.doctor.finding import OK, Finding
from nova.manage.doctor.mode import security_mode
from nova.manage.image_property_commands import MACHINE
from nova.version import OLDEST_BESIDE, RELEASE, is_too_old

TITLE = "Upgrade Check Results"
WIDTH = 70
NAMED = 5
PRETENDED = "fake"  # the hypervisor type of hosts whose guests are none


class Result(enum.IntEnum):
    SUCCESS = 0
    WARNING = 1
    FAILURE = 2


class UpgradeFinding(NamedTuple):
    result: Result
    details: str | None = None


WELL = UpgradeFinding(Result.SUCCESS)


def schemas(options: Options) -> UpgradeFinding:
    """Whether both databases have this release's tables."""
    behind = []
    for schema, command in (("api", "api_db"), ("cell", "db")):
        have, want = (look(schema, serving(options, schema)) for look in (migrate.current, migrate.newest))
        if have != want:
            behind.append(f"the {schema} database is at {have or 'nothing'} and this release has {want}: run "
                          f"'nova-manage {command} sync'")
    return UpgradeFinding(Result.FAILURE, "; ".join(behind).capitalize() + ".") if behind else WELL


def cells(options: Options) -> UpgradeFinding:
    """There is nothing to map. Tools ask before the first host is there, too."""
    if _computes(_known(options)):
        return WELL
    return UpgradeFinding(Result.SUCCESS, "No compute host has registered yet. Hosts join by starting, and nothing has "
                          "to be mapped.")


def computes(options: Options) -> UpgradeFinding:
    """Daemons that cannot work beside those of this release."""
    return too_old(_known(options))


def too_old(rows: Sequence[RunningRelease]) -> UpgradeFinding:
    """Those of ``rows`` for which the step to this release is too long."""
    old = [f"{row.binary} on {row.host} ({row.release})" for row in rows if is_too_old(row.release)]
    if old:
        return UpgradeFinding(Result.FAILURE, f"Before {OLDEST_BESIDE}, the oldest release that works beside "
                              f"{RELEASE}: {_some(old)}. Upgrade them to a release between first.")
    return WELL


def _known(options: Options) -> list[RunningRelease]:
    with serving(options, "cell").reading() as tx:
        return releases(tx)


def _computes(rows: Sequence[RunningRelease]) -> set[str]:
    return {row.host for row in rows if row.binary == COMPUTE}


def enrolled(options: Options) -> UpgradeFinding:
    """Hosts that no conductor of this release will believe; secrets that an older release left in clear. A cloud that
    was made without secrets of hosts, as deployment tools make it, has nobody who could enrol them."""
    hosts = _computes(_known(options))
    with serving(options, "cell").reading() as tx:
        missing = sorted(hosts - enrolments.names(tx).keys())
        clear = enrolments.in_clear(tx)
    if missing:
        kept = Result.WARNING if options.conductor.host_secret_key else Result.SUCCESS
        return UpgradeFinding(kept, f"Not enrolled, so that nothing they say is believed: {_some(missing)}. "
                              "Run 'nova-manage host enroll' for each.")
    if clear:
        return UpgradeFinding(Result.WARNING, f"Secrets in clear in the database: {_some(clear)}. Conductors wrap them "
                              "once no conductor of an older release is alive.")
    return WELL


def data_migrations(options: Options) -> UpgradeFinding:
    """Whether rows are left that an older release wrote."""
    from nova.conductor.upkeep.allocation_audit import Stores
    from nova.conductor.upkeep.data_migrations import pending

    left = pending(Stores(serving(options, "api"), serving(options, "cell")))
    if left:
        return UpgradeFinding(Result.WARNING, f"Not done yet: {_some([one.name for one in left])}. Conductors do them "
                              "while they run; 'nova-manage db online_data_migrations' does them now.")
    return WELL


def policy_file(options: Options) -> UpgradeFinding:
    """JSON is not written any more."""
    from oslo_policy import opts

    opts.set_defaults(options, policy_file="policy.yaml")
    name = options.oslo_policy.policy_file
    if name.endswith(".json"):
        return UpgradeFinding(Result.FAILURE, f"[oslo_policy]policy_file is {name}: turn it into YAML "
                              "(oslopolicy-convert-json-to-yaml --namespace nova), and name that.")
    return WELL


def service_token(options: Options) -> UpgradeFinding:
    """Whether other services are told that it is a service that asks in a user's name: good to know, and no matter of
    an upgrade."""
    if neutron_in_use(options) and not options.service_user.send_service_user_token:
        return UpgradeFinding(Result.SUCCESS, "[service_user]send_service_user_token is off: long operations fail "
                              "where the user's token ends before them. Set it, and [service_user]'s credentials.")
    return WELL


def machine_types(options: Options) -> UpgradeFinding:
    """Servers on libvirt's hosts whose machine may change with a host's default. That is a matter of QEMU's upgrade, or
    of ``[libvirt]hw_machine_type``, and none of ours."""
    with serving(options, "cell").reading() as tx:
        pretended = {row.host for row in hosts.node_rows(tx) if row.facts.hypervisor_type == PRETENDED}
        found = [one.uuid for one in servers.properties_of_images(tx)
                 if one.host not in (None, *pretended) and MACHINE not in one.properties]
    if not found:
        return WELL
    return UpgradeFinding(Result.SUCCESS, f"{len(found)} servers have no hw_machine_type in their records, so that a "
                          "host's default decides: set them before you change [libvirt]hw_machine_type. "
                          "'nova-manage libvirt list_unset_machine_type' names them, and 'nova-manage libvirt "
                          "update_machine_type' sets one.")


def cinder(options: Options) -> UpgradeFinding:
    """Whether Cinder answers, where there are credentials for it."""
    from nova.clients import session

    if session.load(options, "cinder").auth is None:
        return UpgradeFinding(Result.SUCCESS, "There are no credentials for Cinder in [cinder] or [service_user].")
    found = doctor_services.cinder(options)
    if found.state == OK:
        return WELL
    return UpgradeFinding(Result.WARNING, _sentences(found))


def mode(options: Options) -> UpgradeFinding:
    """The cloud's security mode: told, and no matter of an upgrade."""
    return UpgradeFinding(Result.SUCCESS, _sentences(security_mode(options)))


def unread(options: Options) -> UpgradeFinding:
    """Options in files that this release does not read: told, and no matter of an upgrade."""
    found = written.unread(options)
    return WELL if found.state == OK else UpgradeFinding(Result.SUCCESS, _sentences(found))


def _sentences(found: Finding) -> str:
    """``doctor`` writes without capital letters and periods."""
    return " ".join(f"{text[0].upper()}{text[1:].rstrip('.')}." for text in (found.what, found.cure) if text)


def nothing(why: str) -> Callable[[Options], UpgradeFinding]:
    """A check of upstream's that has nothing to look at."""
    return lambda options: UpgradeFinding(Result.SUCCESS, why)


CHECKS: tuple[tuple[str, Callable[[Options], UpgradeFinding]], ...] = (
    ("Schemas", schemas), ("Cells v2", cells),
    ("Placement API", nothing("Resources are claimed in the api database; no service is asked.")),
    ("Cinder API", cinder),
    ("Online data migrations", data_migrations),
    ("Policy File JSON to YAML Migration", policy_file), ("Older than N-1 computes", computes),
    ("Enrolled hosts", enrolled), ("hw_machine_type unset", machine_types),
    ("Service User Token Configuration", service_token), ("Security mode", mode), ("Options", unread))


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def check(options: Options) -> list[tuple[str, UpgradeFinding]]:
    """All of them; of databases without this release's tables only what that says. NovaError: a database does not
    answer, or its URL is not set."""
    first = schemas(options)
    chosen = CHECKS if first.result is Result.SUCCESS else CHECKS[:1]
    return [(name, look(options)) for name, look in chosen]


def table(found: Sequence[tuple[str, UpgradeFinding]]) -> str:
    """As upstream prints it: one box, a part a check."""
    parts = [[TITLE]]
    for name, finding in found:
        details = textwrap.wrap(f"Details: {finding.details}", WIDTH, subsequent_indent="  ")
        parts.append([f"Check: {name}", f"Result: {finding.result.name.capitalize()}", *details])
    width = max(len(line) for part in parts for line in part)
    rule = f"+{'-' * (width + 2)}+"
    lines = [rule]
    for part in parts:
        lines += [*(f"| {line.ljust(width)} |" for line in part), rule]
    return "\n".join(lines)


def as_json(found: Sequence[tuple[str, UpgradeFinding]]) -> str:
    """The same for programs; ``result`` is the number."""
    return json.dumps({"name": TITLE, "checks": [{"check": name, "result": int(one.result), "details": one.details}
                                                 for name, one in found]})

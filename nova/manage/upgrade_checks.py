"""``nova-status upgrade check``: check whether an upgrade to this release can begin, or is complete.

Check names, table and JSON are upstream's, for tools that parse them.
"""

from __future__ import annotations

import enum
import json
import textwrap
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nova.conf._options import Options, oslo_conf
from nova.conf.network import neutron_in_use
from nova.db.host import enrolments, hosts
from nova.db.host.services import COMPUTE, RunningRelease, releases
from nova.db.schema import revisions
from nova.db.server import servers
from nova.manage.databases import serving
from nova.manage.doctor import config_options
from nova.manage.doctor import services as doctor_services
from nova.manage.doctor.finding import OK, Finding
from nova.manage.doctor.mode import security_mode
from nova.manage.image_property_commands import MACHINE
from nova.version import OLDEST_BESIDE, RELEASE, is_too_old

TITLE = "Upgrade Check Results"
WIDTH = 70
NAMED = 5
PRETENDED = "fake"  # hypervisor type of hosts without real guests


class Result(enum.IntEnum):
    SUCCESS = 0
    WARNING = 1
    FAILURE = 2


class UpgradeFinding(NamedTuple):
    result: Result
    details: str | None = None


WELL = UpgradeFinding(Result.SUCCESS)


def schemas(options: Options) -> UpgradeFinding:
    """Check that both databases have this release's schema."""
    behind = []
    for schema, command in (("api", "api_db"), ("cell", "db")):
        have, want = revisions.current(schema, serving(options, schema)), revisions.newest(schema)
        if have != want:
            behind.append(f"the {schema} database is at {have or 'nothing'}, but this release needs {want}: run "
                          f"'nova-manage {command} sync'")
    return UpgradeFinding(Result.FAILURE, "; ".join(behind).capitalize() + ".") if behind else WELL


def cells(options: Options) -> UpgradeFinding:
    """Succeed: nothing needs to be mapped. Tools also run this check before the first host has registered."""
    if _computes(_known(options)):
        return WELL
    return UpgradeFinding(Result.SUCCESS, "No compute host has registered yet. Hosts join when they start; nothing has "
                          "to be mapped.")


def computes(options: Options) -> UpgradeFinding:
    """Report services that cannot work together with this release."""
    return too_old(_known(options))


def too_old(rows: Sequence[RunningRelease]) -> UpgradeFinding:
    """Report the services of ``rows`` whose release is too old for an upgrade to this release."""
    old = [f"{row.binary} on {row.host} ({row.release})" for row in rows if is_too_old(row.release)]
    if old:
        return UpgradeFinding(Result.FAILURE, f"Older than {OLDEST_BESIDE}, the oldest release that works with "
                              f"{RELEASE}: {_some(old)}. Upgrade them to an intermediate release first.")
    return WELL


def _known(options: Options) -> list[RunningRelease]:
    with serving(options, "cell").reading() as tx:
        return releases(tx)


def _computes(rows: Sequence[RunningRelease]) -> set[str]:
    return {row.host for row in rows if row.binary == COMPUTE}


def enrolled(options: Options) -> UpgradeFinding:
    """Report hosts whose messages conductors of this release will reject, and secrets that an older release stored in
    clear text. Missing enrolments are a warning only if host secrets are configured: clouds that deployment tools
    create without them have no operator who could enroll hosts."""
    hosts = _computes(_known(options))
    with serving(options, "cell").reading() as tx:
        missing = sorted(hosts - enrolments.names(tx).keys())
        clear = enrolments.in_clear(tx)
    if missing:
        kept = Result.WARNING if options.conductor.host_secret_key else Result.SUCCESS
        return UpgradeFinding(kept, f"Not enrolled, so their messages are rejected: {_some(missing)}. "
                              "Run 'nova-manage host enroll' for each.")
    if clear:
        return UpgradeFinding(Result.WARNING, f"Unencrypted secrets in the database: {_some(clear)}. Conductors "
                              "encrypt them once no conductor of an older release is running.")
    return WELL


def data_migrations(options: Options) -> UpgradeFinding:
    """Report pending data migrations: rows that an older release wrote."""
    from nova.conductor.upkeep.allocation_audit import Stores
    from nova.conductor.upkeep.data_migrations import pending

    left = pending(Stores(serving(options, "api"), serving(options, "cell")))
    if left:
        return UpgradeFinding(Result.WARNING, f"Pending: {_some([one.name for one in left])}. Conductors run them in "
                              "the background; 'nova-manage db online_data_migrations' runs them now.")
    return WELL


def policy_file(options: Options) -> UpgradeFinding:
    """Report a policy file in JSON, which is not supported any more."""
    from oslo_policy import opts

    source = oslo_conf(options)
    opts.set_defaults(source, policy_file="policy.yaml")
    name = source.oslo_policy.policy_file
    if name.endswith(".json"):
        return UpgradeFinding(Result.FAILURE, f"[oslo_policy]policy_file is {name}: convert it to YAML "
                              "(oslopolicy-convert-json-to-yaml --namespace nova), and set the option to the new file.")
    return WELL


def service_token(options: Options) -> UpgradeFinding:
    """Report if no service token is sent with users' tokens to other services. Informational: independent of
    upgrades."""
    if neutron_in_use(options) and not options.service_user.send_service_user_token:
        return UpgradeFinding(Result.SUCCESS, "[service_user]send_service_user_token is off: long operations fail "
                              "when the user's token expires. Set it, and the credentials of [service_user].")
    return WELL


def machine_types(options: Options) -> UpgradeFinding:
    """Report servers on libvirt hosts whose machine type may change with a host's default. Informational: it depends on
    upgrades of QEMU and on ``[libvirt]hw_machine_type``, not on nova."""
    with serving(options, "cell").reading() as tx:
        pretended = {row.host for row in hosts.node_rows(tx) if row.facts.hypervisor_type == PRETENDED}
        found = [one.uuid for one in servers.properties_of_images(tx)
                 if one.host not in (None, *pretended) and MACHINE not in one.properties]
    if not found:
        return WELL
    return UpgradeFinding(Result.SUCCESS, f"{len(found)} servers have no hw_machine_type in their records, so the "
                          "host's default decides: set them before you change [libvirt]hw_machine_type. "
                          "'nova-manage libvirt list_unset_machine_type' lists them, and 'nova-manage libvirt "
                          "update_machine_type' sets one.")


def cinder(options: Options) -> UpgradeFinding:
    """Check that Cinder answers, if credentials for it are set."""
    from nova.clients import session

    if session.load(options, "cinder").auth is None:
        return UpgradeFinding(Result.SUCCESS, "No credentials for Cinder are set in [cinder] or [service_user].")
    found = doctor_services.cinder(options)
    if found.state == OK:
        return WELL
    return UpgradeFinding(Result.WARNING, _sentences(found))


def mode(options: Options) -> UpgradeFinding:
    """Report the cloud's security mode. Informational: independent of upgrades."""
    return UpgradeFinding(Result.SUCCESS, _sentences(security_mode(options)))


def unread(options: Options) -> UpgradeFinding:
    """Report options in files that this release does not read. Informational: independent of upgrades."""
    found = config_options.unread(options)
    return WELL if found.state == OK else UpgradeFinding(Result.SUCCESS, _sentences(found))


def _sentences(found: Finding) -> str:
    """Return a doctor finding as sentences: ``doctor`` writes without capital letters and periods."""
    return " ".join(f"{text[0].upper()}{text[1:].rstrip('.')}." for text in (found.what, found.cure) if text)


def nothing(why: str) -> Callable[[Options], UpgradeFinding]:
    """Return a check of upstream's that has nothing to check here."""
    return lambda options: UpgradeFinding(Result.SUCCESS, why)


CHECKS: tuple[tuple[str, Callable[[Options], UpgradeFinding]], ...] = (
    ("Schemas", schemas), ("Cells v2", cells),
    ("Placement API", nothing("Resources are claimed in the api database; no Placement service is needed.")),
    ("Cinder API", cinder),
    ("Online data migrations", data_migrations),
    ("Policy File JSON to YAML Migration", policy_file), ("Older than N-1 computes", computes),
    ("Enrolled hosts", enrolled), ("hw_machine_type unset", machine_types),
    ("Service User Token Configuration", service_token), ("Security mode", mode), ("Options", unread))


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def check(options: Options) -> list[tuple[str, UpgradeFinding]]:
    """Run all checks, or only the schema check if it fails. Raises NovaError if a database does not answer, or its URL
    is not set."""
    first = schemas(options)
    chosen = CHECKS if first.result is Result.SUCCESS else CHECKS[:1]
    return [(name, look(options)) for name, look in chosen]


def table(found: Sequence[tuple[str, UpgradeFinding]]) -> str:
    """Return the findings in upstream's format: one box, with a part for each check."""
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
    """Return the findings as JSON; ``result`` is the number."""
    return json.dumps({"name": TITLE, "checks": [{"check": name, "result": int(one.result), "details": one.details}
                                                 for name, one in found]})

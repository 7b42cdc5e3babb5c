"""Doctor check that each secret of a controller is in a file that only the services that need it can read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from nova.conf._options import Options
from nova.conf._security_mode import asked_mode
from nova.manage.doctor.config_options import written
from nova.manage.doctor.finding import NAMED, OK, WARN, Finding, is_host
from nova.manage.secret_files import readers
from nova.model.security.security_modes import SecurityMode

SPLIT = "nova-manage secrets split (--dry-run shows what it would do)"


class OpenSecret(NamedTuple):
    """A secret in a file that users other than its owner can read."""

    option: str
    file: str


def secret_files(options: Options) -> Finding:
    """List secrets in files that a group or all users can read. Services on a compute host share their secrets."""
    if is_host(options):
        return Finding(OK, "the services on a compute host share its secrets")
    if asked_mode(options) is SecurityMode.UPSTREAM:
        return Finding(OK, "in upstream mode all services share the broker's password")
    found = list(_open_secrets(options))
    if not found:
        return Finding(OK, "each secret is in a file that one user can read")
    named = ", ".join(f"{one.option} in {one.file}" for one in found[:NAMED])
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return Finding(WARN, f"users of other services can read {named}{more}", SPLIT,
                   tuple({"option": one.option, "file": one.file} for one in found))


def _open_secrets(options: Options) -> Iterator[OpenSecret]:
    """Yield each secret once, sorted by option and file."""
    found = {OpenSecret(str(one), one.file) for one in written(options) if (one.section, one.name) in readers.READERS}
    yield from (one for one in sorted(found) if os.stat(one.file).st_mode & 0o077)

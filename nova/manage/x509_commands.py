"""``nova-manage x509``: users' certificates, which nova-cert revokes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from nova.conf.base import Options
from nova.manage.command import Command, argument

if TYPE_CHECKING:
    from nova.rpc.contracts.cert import CertRPC

#: A client of nova-cert, by the configuration: made when a command runs.
CertsOf = Callable[[Options], "CertRPC"]
Say = Callable[[str], None]


def actions(certs_of: CertsOf, say: Say) -> dict[str, Command]:
    """The rows of nova-manage's table."""
    return {"revoke": Command(lambda options, given: revoke(certs_of(options), given, say),
                              "revoke certificates of a user, of a project, or of a user in a project", (
                                  argument("--user", help="the user's id"),
                                  argument("--project", help="the project's id")))}


def revoke(certs: CertRPC, given: argparse.Namespace, say: Say) -> int:
    """0; 2: neither is named; 3: there was none that was not revoked before. NotFound: with ``use_project_ca``, a
    project without an authority. Unavailable: nova-cert, or the conductor."""
    if not given.user and not given.project:
        say("Say whose: --user ID, --project ID, or both.")
        return 2
    if given.user and given.project:
        count = certs.revoke_certs_by_user_and_project(given.user, given.project)
    elif given.user:
        count = certs.revoke_certs_by_user(given.user)
    else:
        count = certs.revoke_certs_by_project(given.project)
    if not count:
        say("There is no certificate to revoke.")
        return 3
    say(f"Certificates revoked: {count}. The list is in crl.pem of nova-cert's ca_path.")
    return 0


__all__ = ["actions", "revoke"]

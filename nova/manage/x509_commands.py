"""``nova-manage x509``: revoke users' certificates through nova-cert."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from nova.conf._options import Options
from nova.manage.command import Command, argument

if TYPE_CHECKING:
    from nova.rpc.contracts.cert import CertRPC

#: Configuration -> a client of nova-cert, created when a command runs.
CertsOf = Callable[[Options], "CertRPC"]
Say = Callable[[str], None]


def actions(certs_of: CertsOf, say: Say) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    return {"revoke": Command(lambda options, given: revoke(certs_of(options), given, say),
                              "revoke certificates of a user, of a project, or of a user in a project", (
                                  argument("--user", help="the user's id"),
                                  argument("--project", help="the project's id")))}


def revoke(certs: CertRPC, given: argparse.Namespace, say: Say) -> int:
    """Revoke the certificates. Return 0; 2 if neither user nor project is given; 3 if no unrevoked certificate exists.

    Raises NotFound if, with ``use_project_ca``, the project has no authority; Unavailable if nova-cert or the conductor
    does not answer."""
    if not given.user and not given.project:
        say("Specify whose certificates: --user ID, --project ID, or both.")
        return 2
    if given.user and given.project:
        count = certs.revoke_certs_by_user_and_project(given.user, given.project)
    elif given.user:
        count = certs.revoke_certs_by_user(given.user)
    else:
        count = certs.revoke_certs_by_project(given.project)
    if not count:
        say("No certificates to revoke.")
        return 3
    say(f"Certificates revoked: {count}. The revocation list is crl.pem in nova-cert's ca_path.")
    return 0


__all__ = ["actions", "revoke"]

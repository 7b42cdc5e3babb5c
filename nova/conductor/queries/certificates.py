"""Owners of the certificates that nova-cert issued."""

from __future__ import annotations

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.db import certificates
from nova.model.security.certificates import CertificateQuery, CertificateRecord

PAGE = 1000  # rows per response
LONGEST = 255  # of a name, in characters: MariaDB would truncate longer names


class Certificates:
    """The certificate calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def keep_certificate(self, certificate: CertificateRecord) -> None:
        """Record a certificate's owner. A serial number is used one time, so an older row of its file is of a previous
        authority.

        Raises Invalid if a name is too long for a row, because it could not be found again.
        """
        names = certificate.user_id, certificate.project_id, certificate.file_name
        if too_long := [name for name in names if len(name) > LONGEST]:
            raise errors.Invalid(f"A certificate's names must have at most {LONGEST} characters: {too_long[0]}")
        self.deps.api.transact(lambda tx: certificates.put(tx, certificate))

    def list_certificates(self, query: CertificateQuery) -> tuple[CertificateRecord, ...]:
        """Return the certificates of a user or project, the oldest first. Raises Invalid if the query names neither."""
        if query.user_id is None and query.project_id is None:
            raise errors.Invalid("Specify the user or the project of the certificates.")
        with self.deps.api.reading() as tx:
            return certificates.select(tx, query, PAGE)

    def forget_certificates(self, file_names: tuple[str, ...]) -> None:
        """Delete the rows of these certificates; missing rows are not an error."""
        self.deps.api.transact(lambda tx: certificates.delete(tx, file_names))

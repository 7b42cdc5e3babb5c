"""Whose nova-cert's certificates are."""

from __future__ import annotations

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.db import certificates
from nova.model.security.certificates import CertificateQuery, CertificateRecord

PAGE = 1000  # rows an answer
LONGEST = 255  # of a name: MariaDB would cut what is longer


class Certificates:
    """The certificate calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def keep_certificate(self, certificate: CertificateRecord) -> None:
        """A number is given once, so another row of its file is of an authority that was made anew. Invalid: a name
        that is too long for a row, and could not be found again."""
        names = certificate.user_id, certificate.project_id, certificate.file_name
        if too_long := [name for name in names if len(name) > LONGEST]:
            raise errors.Invalid(f"A certificate's names have {LONGEST} characters at most: {too_long[0]}")
        self.deps.api.transact(lambda tx: certificates.put(tx, certificate))

    def list_certificates(self, query: CertificateQuery) -> tuple[CertificateRecord, ...]:
        """The oldest first. Invalid: all of the cloud's are asked for."""
        if query.user_id is None and query.project_id is None:
            raise errors.Invalid("Name the user or the project whose certificates are meant.")
        with self.deps.api.reading() as tx:
            return certificates.select(tx, query, PAGE)

    def forget_certificates(self, file_names: tuple[str, ...]) -> None:
        """One that has no row is no error."""
        self.deps.api.transact(lambda tx: certificates.delete(tx, file_names))

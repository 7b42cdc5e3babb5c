"""User certificates signed by nova-cert. A certificate's row is deleted on revocation, or some time after expiry."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.api import certificates
from nova.db.sql.statements import delete_some, insert_ignoring, update_where
from nova.db.sql.types import later, utc_now
from nova.model.security.certificates import CertificateQuery, CertificateRecord

_COLUMNS = [certificates.c[name] for name in CertificateRecord.__struct_fields__]


def put(tx: Connection, record: CertificateRecord) -> None:
    """Insert the certificate's row, or update the owner of an existing file name. Idempotent."""
    values = {"user_id": record.user_id, "project_id": record.project_id, "ends_at": record.ends_at}
    insert_ignoring(tx, certificates, [{"file_name": record.file_name, "created_at": utc_now(), **values}])
    update_where(tx, certificates, {"file_name": record.file_name}, values)


def select(tx: Connection, query: CertificateQuery, limit: int) -> tuple[CertificateRecord, ...]:
    """Return the matching certificates in creation order."""
    wanted = {"user_id": query.user_id, "project_id": query.project_id}
    where = [certificates.c[name] == value for name, value in wanted.items() if value is not None]
    found = tx.execute(sa.select(*_COLUMNS).where(*where).order_by(certificates.c.id).limit(limit))
    return tuple(CertificateRecord(**row._mapping) for row in found)


def delete(tx: Connection, file_names: Sequence[str]) -> None:
    """Delete the rows of these files; missing ones are ignored."""
    tx.execute(sa.delete(certificates).where(certificates.c.file_name.in_(file_names)))


def purge(tx: Connection, older_than_s: int, limit: int) -> int:
    """Delete up to ``limit`` certificates that expired more than ``older_than_s`` seconds ago; return their number."""
    return delete_some(tx, certificates, certificates.c.ends_at < later(-older_than_s), limit)

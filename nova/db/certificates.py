"""Certificates of users that nova-cert signed: a row of each goes when it is revoked, or some time after its end."""

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
    """Make its row, or write anew whose the file is. May be called twice."""
    values = {"user_id": record.user_id, "project_id": record.project_id, "ends_at": record.ends_at}
    insert_ignoring(tx, certificates, [{"file_name": record.file_name, "created_at": utc_now(), **values}])
    update_where(tx, certificates, {"file_name": record.file_name}, values)


def select(tx: Connection, query: CertificateQuery, limit: int) -> tuple[CertificateRecord, ...]:
    """In the order in which they were made."""
    wanted = {"user_id": query.user_id, "project_id": query.project_id}
    where = [certificates.c[name] == value for name, value in wanted.items() if value is not None]
    found = tx.execute(sa.select(*_COLUMNS).where(*where).order_by(certificates.c.id).limit(limit))
    return tuple(CertificateRecord(**row._mapping) for row in found)


def delete(tx: Connection, file_names: Sequence[str]) -> None:
    """One that is not there is no error."""
    tx.execute(sa.delete(certificates).where(certificates.c.file_name.in_(file_names)))


def purge(tx: Connection, older_than_s: int, limit: int) -> int:
    """Forget those that ended long ago, up to ``limit``; how many."""
    return delete_some(tx, certificates, certificates.c.ends_at < later(-older_than_s), limit)

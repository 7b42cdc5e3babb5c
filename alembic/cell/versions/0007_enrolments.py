"""Hosts are enrolled: those that told a secret before are, with it and with what they run.

Revision: 0007; follows: 0006
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import Json, key, moment, text, utc_now

revision = "0007"
down_revision = "0006"

HOSTS_RUN = ("nova-compute", "nova-network", "nova-metadata")


def upgrade() -> None:
    op.create_table(
        "enrolments",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("host", text(), nullable=False),
        sa.Column("runs", Json(tuple[str, ...]), nullable=False),
        sa.Column("addresses", Json(tuple[str, ...]), nullable=False),
        sa.Column("token", text(64), nullable=False),
        sa.Column("token_until", moment()),
        sa.Column("secret", text(64), nullable=False),
        sa.Column("former", text(64), nullable=False),
        sa.Column("former_until", moment()),
        sa.Column("version", key(), nullable=False),
        sa.Column("enrolled_at", moment(), nullable=False),
        sa.Column("joined_at", moment()),
        sa.Column("expelled_at", moment()),
        sa.UniqueConstraint("host", name="uq_enrolments_host"))
    _known_hosts(op.get_bind())


def _known_hosts(bind: sa.Connection) -> None:
    services = sa.table("services", *map(sa.column, ("host", "binary", "secret", "deleted")))
    lists = (sa.column(name, Json(tuple[str, ...])) for name in ("runs", "addresses"))
    enrolments = sa.table("enrolments", *lists, *map(sa.column, (
        "host", "token", "secret", "former", "version", "enrolled_at", "joined_at")))
    there = set(bind.execute(sa.select(enrolments.c.host)).scalars())
    runs, secrets = {}, {}
    for row in bind.execute(sa.select(services).where(services.c.deleted == 0, services.c.binary.in_(HOSTS_RUN))):
        runs.setdefault(row.host, set()).add(row.binary)
        secrets[row.host] = secrets.get(row.host) or row.secret
    for host in sorted(secrets.keys() - there):
        if secrets[host]:
            bind.execute(sa.insert(enrolments).values(
                host=host, runs=tuple(sorted(runs[host])), addresses=(), token="", secret=secrets[host], former="",
                version=1, enrolled_at=utc_now(), joined_at=utc_now()))

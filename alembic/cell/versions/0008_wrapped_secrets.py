"""Hosts' secrets have room to be wrapped, which conductors do once all of them can read it.

Revision: 0008; follows: 0007
"""

from nova.db.schema.resumable import op
from nova.db.sql.types import text

revision = "0008"
down_revision = "0007"

WRAPPED = ("token", "secret", "former")


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":  # which keeps texts of any length, and changes no column's
        return
    for name in WRAPPED:
        op.alter_column("enrolments", name, type_=text(), existing_nullable=False)

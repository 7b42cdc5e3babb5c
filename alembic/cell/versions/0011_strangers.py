"""What hosts and the ledger have that no record explains, and how far the audits are.

Revision: 0011; follows: 0010
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import ident, key, moment, text

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "strangers",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("kind", text(16), nullable=False),
        sa.Column("host", text(), nullable=False),
        sa.Column("name", text(), nullable=False),
        sa.Column("server_uuid", ident(), nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("epoch", key(), nullable=False),
        sa.Column("first_seen_at", moment(), nullable=False),
        sa.Column("ordered_at", moment()),
        sa.Column("ended_at", moment()),
        sa.Column("ending", text(64), nullable=False),
        sa.Column("ended", key(), nullable=False),
        sa.UniqueConstraint("host", "kind", "name", "ended", name="uq_strangers_host_kind_name_ended"),
        sqlite_autoincrement=True)
    op.create_index("ix_strangers_ended", "strangers", ["ended", "ended_at"])
    op.create_table(
        "audit_walks",
        sa.Column("name", text(64), primary_key=True),
        sa.Column("after", text(64), nullable=False),
        sa.Column("taken_until", moment(), nullable=False),
        sa.Column("passed_at", moment()))

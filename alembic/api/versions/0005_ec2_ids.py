"""What EC2 calls things.

Revision: 0005; follows: 0004
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import key, moment, text

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "ec2_ids", sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("kind", text(20), nullable=False), sa.Column("external_id", text(64), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.UniqueConstraint("kind", "external_id", name="uq_ec2_ids_kind_external_id"), sqlite_autoincrement=True)

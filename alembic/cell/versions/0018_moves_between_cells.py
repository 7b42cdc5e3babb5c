"""Guests that a move to another cell set aside: their removal is recorded, but not due until the move is confirmed.

Revision: 0018; follows: 0017
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("owed", sa.Column("held", sa.Boolean, nullable=False, server_default=sa.false()))

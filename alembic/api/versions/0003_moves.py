"""Claims of servers that move: both ends are held.

Revision: 0003; follows: 0002
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import text

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("allocations", sa.Column("moving", text(36)))
    op.create_index("ix_allocations_moving", "allocations", ["moving"])

"""Cells that can be disabled, the cell of servers that are not placed yet, times of moves, and the key of cells' URLs.

Revision: 0008; follows: 0007
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import moment, text

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("cell_mappings", sa.Column("disabled", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("cell_mappings", sa.Column("is_entry", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("ledger", sa.Column("moved_at", moment()))
    op.create_index("ix_ledger_moved_at", "ledger", ["moved_at"])
    op.create_table(
        "api_settings",
        sa.Column("name", text(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False))

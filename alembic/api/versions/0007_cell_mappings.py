"""What deployment tools recorded of cells.

Revision: 0007; follows: 0006
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import ident, long_text, moment, text

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "cell_mappings",
        sa.Column("uuid", ident(), primary_key=True),
        sa.Column("name", text(), nullable=False),
        sa.Column("transport_url", long_text()),
        sa.Column("database_connection", long_text()),
        sa.Column("created_at", moment(), nullable=False))

"""Messages of hosts that were taken, so that no conductor takes one a second time.

Revision: 0014; follows: 0013
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import key, moment, text

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "taken_messages",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("digest", text(32), nullable=False),
        sa.Column("taken_at", moment(), nullable=False),
        sa.UniqueConstraint("digest", name="uq_taken_messages_digest"))
    op.create_index("ix_taken_messages_taken_at", "taken_messages", ["taken_at"])

"""What cell conductors leave to super conductors: cleanups that hosts have done, and facts that guests ask for. The
names of guests whose host moved to another cell.

Revision: 0017; follows: 0016
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import Json, ident, key, moment, text

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("owed", sa.Column("done_at", moment()))
    op.add_column("servers", sa.Column("instance_name", text()))
    op.create_table(
        "guest_facts",
        sa.Column("server_uuid", ident(), primary_key=True),
        sa.Column("epoch", key(), nullable=False),
        sa.Column("host", text(), nullable=False),
        sa.Column("wanted", sa.Boolean, nullable=False),
        sa.Column("facts", Json(object)),
        sa.Column("asked_at", moment(), nullable=False))
    op.create_index("ix_guest_facts_wanted", "guest_facts", ["wanted"])

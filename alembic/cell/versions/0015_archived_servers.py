"""Deleted servers that an operator archived.

Revision: 0015; follows: 0014
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import moment

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("servers", sa.Column("archived_at", moment()))

"""What conductors take of the database server, and whose clock is wrong.

Revision: 0010; follows: 0009
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import Json
from nova.model.host.services import DatabaseConnections

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("services", sa.Column("connections", Json(DatabaseConnections)))
    op.add_column("services", sa.Column("clock_off_s", sa.Float))

"""How much room a host claims, and how much of it is believed.

Revision: 0009; follows: 0008
"""

from collections.abc import Mapping

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import Json

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    for name in ("accepted_room", "claimed_room"):
        op.add_column("enrolments", sa.Column(name, Json(Mapping[str, int])))

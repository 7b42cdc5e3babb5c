"""What a server's next actions must know of its past ones; what periodic tasks look for.

Revision: 0003; follows: 0002
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import Json

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("servers", sa.Column("memo", Json(object)))
    op.create_index("ix_servers_vm_state", "servers", ["deleted", "vm_state", "updated_at"])
    op.create_index("ix_migrations_status", "migrations", ["status", "id"])

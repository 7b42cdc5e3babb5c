"""How busy hosts are is read from an index alone: the one on tasks has the host, too.

Revision: 0004; follows: 0003
"""

from nova.db.schema.resumable import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_index("ix_servers_tasks", "servers", ["deleted", "task_state", "id", "host"])
    op.drop_index("ix_servers_task_state", "servers")

"""What is over and old is found without a look at all that is not.

Revision: 0012; follows: 0011
"""

from nova.db.schema.resumable import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_index("ix_services_deleted", "services", ["deleted"])
    op.create_index("ix_strangers_ended_at", "strangers", ["ended_at"])

"""The cloud's security mode, generated keys, and hosts that have moved to a vhost of their own.

Revision: 0016; follows: 0015
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import moment, text

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "security_settings",
        sa.Column("name", text(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False))
    op.add_column("enrolments", sa.Column("isolated_at", moment()))
    op.add_column("enrolments", sa.Column("may_return", sa.Boolean, nullable=False, server_default=sa.false()))

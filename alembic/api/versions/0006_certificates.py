"""Users' certificates that nova-cert signed.

Revision: 0006; follows: 0005
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import key, moment, text

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "certificates",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("user_id", text(), nullable=False),
        sa.Column("project_id", text(), nullable=False),
        sa.Column("file_name", text(), nullable=False),
        sa.Column("ends_at", moment(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.UniqueConstraint("file_name", name="uq_certificates_file_name"))
    op.create_index("ix_certificates_user_id_project_id", "certificates", ["user_id", "project_id"])
    op.create_index("ix_certificates_project_id", "certificates", ["project_id"])
    op.create_index("ix_certificates_ends_at", "certificates", ["ends_at"])

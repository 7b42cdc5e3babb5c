"""Servers' disks on volumes, who has which volume, and what is still to be given back to the volume service.

Revision: 0013; follows: 0012
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import Json, ident, key, moment, text

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("servers", sa.Column("volumes", Json(object)))
    op.create_table(
        "volume_holders",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("volume_id", ident(), nullable=False),
        sa.Column("server_uuid", ident(), nullable=False),
        sa.Column("holder", text(36), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.UniqueConstraint("volume_id", "holder", name="uq_volume_holders_volume_id_holder"))
    op.create_index("ix_volume_holders_server_uuid", "volume_holders", ["server_uuid"])
    op.create_table(
        "volume_cleanups",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("kind", text(16), nullable=False),
        sa.Column("what", text(36), nullable=False),
        sa.Column("server_uuid", ident(), nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("due_at", moment(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.UniqueConstraint("kind", "what", "server_uuid", name="uq_volume_cleanups_kind_what_server_uuid"))
    op.create_index("ix_volume_cleanups_due_at", "volume_cleanups", ["due_at"])
    op.create_index("ix_volume_cleanups_server_uuid", "volume_cleanups", ["server_uuid"])

"""Migrations of servers, and audits of their usage.

Revision: 0002; follows: 0001
"""

import sqlalchemy as sa
from alembic import op

from nova.db.types import Json, ident, key, moment, text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "migrations",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("uuid", ident(), nullable=False),
        sa.Column("server_uuid", ident(), nullable=False),
        sa.Column("type", text(16), nullable=False),
        sa.Column("status", text(32), nullable=False),
        sa.Column("user_id", text()),
        sa.Column("project_id", text()),
        sa.Column("source_compute", text()),
        sa.Column("source_node", text()),
        sa.Column("dest_compute", text()),
        sa.Column("dest_node", text()),
        sa.Column("dest_host", text()),
        sa.Column("old_flavor", Json(object)),
        sa.Column("new_flavor", Json(object)),
        sa.Column("progress", Json(object)),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("updated_at", moment()),
        sa.UniqueConstraint("uuid", name="uq_migrations_uuid"),
        sqlite_autoincrement=True)
    op.create_index("ix_migrations_server", "migrations", ["server_uuid", "id"])
    op.create_index("ix_migrations_source", "migrations", ["source_compute", "id"])
    op.create_index("ix_migrations_dest", "migrations", ["dest_compute", "id"])
    op.create_index("ix_migrations_created", "migrations", ["created_at", "id"])
    op.create_index("ix_migrations_updated", "migrations", ["updated_at"])
    op.create_table(
        "usage_audits",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("host", text(), nullable=False),
        sa.Column("period_beginning", moment(), nullable=False),
        sa.Column("period_ending", moment(), nullable=False),
        sa.Column("state", text(16), nullable=False),
        sa.Column("servers", sa.Integer, nullable=False),
        sa.Column("errors", sa.Integer, nullable=False),
        sa.Column("message", text()),
        sa.UniqueConstraint("host", "period_beginning", "period_ending",
                            name="uq_usage_audits_host_period_beginning_period_ending"),
        sqlite_autoincrement=True)
    op.create_index("ix_usage_audits_period", "usage_audits", ["period_ending"])

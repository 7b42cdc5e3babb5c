"""Migrations of servers, and audits of their usage.

Revision: 0002; follows: 0001
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import Json, ident, key, moment, text

revision = "0002"
down_revision = "0001"


#: Of servers: for lists of all projects, and of one by name; those of the default order find a page without its rows.
INDEXES = {"ix_servers_project_newest": ["project_id", "deleted", "created_at", "id", "vm_state"],
           "ix_servers_newest": ["deleted", "created_at", "id", "vm_state"],
           "ix_servers_name": ["deleted", "name", "id"], "ix_servers_user": ["deleted", "user_id", "id"],
           "ix_servers_image": ["deleted", "image_id", "id"], "ix_servers_flavor": ["deleted", "flavorid", "id"],
           "ix_servers_task_state": ["deleted", "task_state", "id"],
           "ix_servers_project_name": ["project_id", "deleted", "name", "id"]}


def upgrade() -> None:
    for name, columns in INDEXES.items():
        op.create_index(name, "servers", columns)
    for name in ("ix_servers_project", "ix_servers_created"):  # the newest ones say what they said
        op.drop_index(name, "servers")
    op.create_index("ix_server_tags_tag", "server_tags", ["tag", "server_uuid"])
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
        sa.Column("runner_id", key(), nullable=False),
        sa.UniqueConstraint("host", "period_beginning", "period_ending",
                            name="uq_usage_audits_host_period_beginning_period_ending"),
        sqlite_autoincrement=True)
    op.create_index("ix_usage_audits_period", "usage_audits", ["period_ending"])
    op.create_index("ix_servers_usage", "servers", ["project_id", "uuid", "launched_at", "terminated_at"])

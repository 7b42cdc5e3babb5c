"""Aggregates, server groups and quota classes; what is known of servers while their cell is away.

Revision: 0002; follows: 0001
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import Json, ident, key, long_text, moment, text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "stamps",
        sa.Column("name", text(64), primary_key=True),
        sa.Column("version", key(), nullable=False))
    op.create_table(
        "aggregates",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("uuid", ident(), nullable=False),
        sa.Column("name", text(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("updated_at", moment()),
        sa.UniqueConstraint("name", name="uq_aggregates_name"),
        sa.UniqueConstraint("uuid", name="uq_aggregates_uuid"),
        sqlite_autoincrement=True)
    op.create_table(
        "aggregate_hosts",
        sa.Column("aggregate_id", key(), primary_key=True, autoincrement=False),
        sa.Column("host", text(), primary_key=True))
    op.create_index("ix_aggregate_hosts_host", "aggregate_hosts", ["host"])
    op.create_table(
        "aggregate_metadata",
        sa.Column("aggregate_id", key(), primary_key=True, autoincrement=False),
        sa.Column("key", text(), primary_key=True),
        sa.Column("value", text(), nullable=False))
    op.create_table(
        "server_groups",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("uuid", ident(), nullable=False),
        sa.Column("project_id", text(), nullable=False),
        sa.Column("user_id", text(), nullable=False),
        sa.Column("name", text(), nullable=False),
        sa.Column("policy", text(32), nullable=False),
        sa.Column("rules", Json(object), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.UniqueConstraint("uuid", name="uq_server_groups_uuid"),
        sqlite_autoincrement=True)
    op.create_index("ix_server_groups_project", "server_groups", ["project_id", "id"])
    op.create_table(
        "server_group_members",
        sa.Column("server_uuid", ident(), primary_key=True),
        sa.Column("group_id", key(), nullable=False),
        sa.Column("user_id", text(), nullable=False))
    op.create_index("ix_server_group_members_group", "server_group_members", ["group_id"])
    op.create_table(
        "quota_classes",
        sa.Column("class_name", text(), primary_key=True),
        sa.Column("resource", text(64), primary_key=True),
        sa.Column("hard_limit", sa.Integer, nullable=False))
    op.add_column("ledger", sa.Column("facts", Json(object)))
    if op.get_context().dialect.name in ("mysql", "mariadb"):
        # its TEXT counts bytes, not characters; its FLOAT is found again by no value that was read from it
        op.alter_column("flavors", "description", type_=long_text(), existing_nullable=True)
        op.alter_column("flavors", "rxtx_factor", type_=sa.Float(53), existing_nullable=False)

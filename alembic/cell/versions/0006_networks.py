"""Floating addresses, DNS domains and security groups.

Revision: 0006; follows: 0005
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import Json, ident, key, moment, text

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("servers", sa.Column("port_demands", Json(object)))
    op.add_column("fixed_addresses", sa.Column("left_at", moment()))
    op.create_index("ix_fixed_addresses_host", "fixed_addresses", ["host", "network_id"])
    op.create_index("ix_fixed_addresses_left", "fixed_addresses", ["left_at"])
    op.create_table(
        "floating_addresses",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("address", text(39), nullable=False),
        sa.Column("pool", text(), nullable=False),
        sa.Column("interface", text(15)),
        sa.Column("project_id", text()),
        sa.Column("fixed_address_id", key()),
        sa.Column("host", text()),
        sa.Column("auto_assigned", sa.Boolean, nullable=False),
        sa.Column("updated_at", moment()),
        sa.UniqueConstraint("address", name="uq_floating_addresses_address"))
    op.create_index("ix_floating_addresses_pool", "floating_addresses", ["pool", "project_id", "id"])
    op.create_index("ix_floating_addresses_project", "floating_addresses", ["project_id"])
    op.create_index("ix_floating_addresses_fixed", "floating_addresses", ["fixed_address_id"])
    op.create_table(
        "network_quota_locks",
        sa.Column("owner", text(), primary_key=True),
        sa.Column("turns", key(), nullable=False))
    op.create_table(
        "dns_domains",
        sa.Column("domain", text(), primary_key=True),
        sa.Column("scope", text(16), nullable=False),
        sa.Column("availability_zone", text()),
        sa.Column("project_id", text()))
    _groups()


def _groups() -> None:
    op.create_table(
        "security_groups",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("project_id", text(), nullable=False),
        sa.Column("user_id", text()),
        sa.Column("name", text(), nullable=False),
        sa.Column("description", text()),
        sa.Column("created_at", moment(), nullable=False),
        sa.UniqueConstraint("project_id", "name", name="uq_security_groups_project_id_name"))
    op.create_table(
        "security_group_rules",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("group_id", key(), nullable=False),
        sa.Column("protocol", text(16)),
        sa.Column("from_port", sa.Integer),
        sa.Column("to_port", sa.Integer),
        sa.Column("cidr", text(43)),
        sa.Column("source_id", key()))
    op.create_index("ix_security_group_rules_group", "security_group_rules", ["group_id"])
    op.create_index("ix_security_group_rules_source", "security_group_rules", ["source_id"])
    op.create_table(
        "security_group_members",
        sa.Column("group_id", key(), primary_key=True, autoincrement=False),
        sa.Column("server_uuid", ident(), primary_key=True))
    op.create_index("ix_security_group_members_server", "security_group_members", ["server_uuid"])
    op.create_table(
        "common_rules",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("kind", text(16), nullable=False),
        sa.Column("protocol", text(16)),
        sa.Column("from_port", sa.Integer),
        sa.Column("to_port", sa.Integer),
        sa.Column("cidr", text(43)))

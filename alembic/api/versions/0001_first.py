"""The api schema as the first release has it.

Revision: 0001; follows: None
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import ident, key, moment, text

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "flavors",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("flavorid", text(), nullable=False),
        sa.Column("name", text(), nullable=False),
        sa.Column("memory_mb", sa.Integer, nullable=False),
        sa.Column("vcpus", sa.Integer, nullable=False),
        sa.Column("root_gb", sa.Integer, nullable=False),
        sa.Column("ephemeral_gb", sa.Integer, nullable=False),
        sa.Column("swap_mb", sa.Integer, nullable=False),
        sa.Column("rxtx_factor", sa.Float, nullable=False),
        sa.Column("is_public", sa.Boolean, nullable=False),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("updated_at", moment()),
        sa.Column("deleted", key(), nullable=False),
        sa.UniqueConstraint("name", "deleted", name="uq_flavors_name_deleted"),
        sa.UniqueConstraint("flavorid", "deleted", name="uq_flavors_flavorid_deleted"))
    op.create_table(
        "flavor_extra_specs",
        sa.Column("flavor_id", key(), primary_key=True, autoincrement=False),
        sa.Column("key", text(), primary_key=True),
        sa.Column("value", text(), nullable=False))
    op.create_table(
        "flavor_projects",
        sa.Column("flavor_id", key(), primary_key=True, autoincrement=False),
        sa.Column("project_id", text(), primary_key=True))
    op.create_table(
        "keypairs",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("user_id", text(), nullable=False),
        sa.Column("name", text(), nullable=False),
        sa.Column("type", text(20), nullable=False),
        sa.Column("fingerprint", text(), nullable=False),
        sa.Column("public_key", sa.Text, nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.UniqueConstraint("user_id", "name", name="uq_keypairs_user_id_name"))
    op.create_table(
        "quotas",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("project_id", text(), nullable=False),
        sa.Column("user_id", text(), nullable=False),
        sa.Column("resource", text(64), nullable=False),
        sa.Column("hard_limit", sa.Integer, nullable=False),
        sa.UniqueConstraint("project_id", "user_id", "resource", name="uq_quotas_project_id_user_id_resource"))
    op.create_table(
        "quota_locks",
        sa.Column("owner", text(), primary_key=True),
        sa.Column("turns", key(), nullable=False))
    op.create_table(
        "ledger",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("server_uuid", ident(), nullable=False),
        sa.Column("project_id", text(), nullable=False),
        sa.Column("user_id", text(), nullable=False),
        sa.Column("cell", text(), nullable=False),
        sa.Column("vcpus", sa.Integer, nullable=False),
        sa.Column("memory_mb", sa.Integer, nullable=False),
        sa.Column("epoch", key(), nullable=False),
        sa.Column("closed", sa.Boolean, nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("closed_at", moment()),
        sa.UniqueConstraint("server_uuid", name="uq_ledger_server_uuid"),
        sqlite_autoincrement=True)
    op.create_index("ix_ledger_closed_at", "ledger", ["closed", "closed_at"])
    op.create_index("ix_ledger_usage", "ledger", ["project_id", "closed", "user_id"])
    op.create_table(
        "resource_providers",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("uuid", ident(), nullable=False),
        sa.Column("name", text(), nullable=False),
        sa.Column("host", text(), nullable=False),
        sa.Column("host_id", ident(), nullable=False),
        sa.Column("generation", key(), nullable=False),
        sa.Column("inventory_version", key(), nullable=False),
        sa.UniqueConstraint("uuid", name="uq_resource_providers_uuid"),
        sqlite_autoincrement=True)
    op.create_index("ix_resource_providers_host", "resource_providers", ["host"])
    op.create_table(
        "inventories",
        sa.Column("provider_id", key(), primary_key=True, autoincrement=False),
        sa.Column("resource_class", text(64), primary_key=True),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("reserved", sa.Integer, nullable=False),
        sa.Column("min_unit", sa.Integer, nullable=False),
        sa.Column("max_unit", sa.Integer, nullable=False),
        sa.Column("step_size", sa.Integer, nullable=False),
        sa.Column("allocation_ratio", sa.Float, nullable=False))
    op.create_table(
        "allocations",
        sa.Column("provider_id", key(), primary_key=True, autoincrement=False),
        sa.Column("consumer", ident(), primary_key=True),
        sa.Column("resource_class", text(64), primary_key=True),
        sa.Column("used", sa.Integer, nullable=False))
    op.create_index("ix_allocations_consumer", "allocations", ["consumer"])

"""Trees of providers with traits and aggregates, consumers beside servers, and what guests hold of a topology.

Revision: 0004; follows: 0003
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import Json, ident, key, moment, text

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("resource_providers", sa.Column("parent_id", key()))
    op.add_column("resource_providers", sa.Column("root_id", key()))
    op.add_column("resource_providers", sa.Column("topology", Json(object)))
    op.add_column("resource_providers", sa.Column("updated_at", moment()))
    op.create_index("ix_resource_providers_root", "resource_providers", ["root_id"])
    op.create_index("ix_resource_providers_name", "resource_providers", ["name"])
    op.add_column("inventories", sa.Column("reported", sa.Boolean, nullable=False, server_default=sa.true()))
    op.add_column("allocations", sa.Column("packing", Json(object)))
    op.add_column("ledger", sa.Column("classes", Json(object)))
    op.create_table(
        "provider_traits", sa.Column("provider_id", key(), primary_key=True, autoincrement=False),
        sa.Column("trait", text(), primary_key=True), sa.Column("reported", sa.Boolean, nullable=False))
    op.create_index("ix_provider_traits_trait", "provider_traits", ["trait"])
    op.create_table(
        "provider_aggregates", sa.Column("provider_id", key(), primary_key=True, autoincrement=False),
        sa.Column("aggregate_uuid", ident(), primary_key=True))
    op.create_index("ix_provider_aggregates_aggregate", "provider_aggregates", ["aggregate_uuid"])
    for name in ("custom_traits", "custom_classes"):
        op.create_table(name, sa.Column("name", text(), primary_key=True),
                        sa.Column("created_at", moment(), nullable=False))
    op.create_table(
        "consumers", sa.Column("uuid", ident(), primary_key=True), sa.Column("project_id", text(), nullable=False),
        sa.Column("user_id", text(), nullable=False), sa.Column("consumer_type", text()),
        sa.Column("generation", key(), nullable=False), sa.Column("mappings", Json(object)),
        sa.Column("created_at", moment(), nullable=False), sa.Column("updated_at", moment()))
    op.create_index("ix_consumers_project", "consumers", ["project_id", "user_id"])

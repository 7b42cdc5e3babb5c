"""The ``api`` schema: cloud-wide data, independent of servers' cells."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from nova.db.sql.types import Json, ident, key, long_text, moment, text
from nova.model.numa.topology import HostTopology, TopologyClaim
from nova.model.server.servers import ServerFacts

#: ``sqlite_autoincrement`` for keys that must never be reused: SQLite would reuse the last row's key after its
#: deletion.
metadata = sa.MetaData(naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s",
                                          "uq": "uq_%(table_name)s_%(column_0_N_name)s"})

flavors = sa.Table(
    "flavors", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("flavorid", text(), nullable=False),
    sa.Column("name", text(), nullable=False),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("root_gb", sa.Integer, nullable=False),
    sa.Column("ephemeral_gb", sa.Integer, nullable=False, default=0),
    sa.Column("swap_mb", sa.Integer, nullable=False, default=0),
    sa.Column("rxtx_factor", sa.Float(53), nullable=False, default=1.0),
    sa.Column("is_public", sa.Boolean, nullable=False, default=True),
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    sa.Column("description", long_text()),
    sa.Column("created_at", moment(), nullable=False),
    sa.Column("updated_at", moment()),
    sa.Column("deleted", key(), nullable=False, default=0),
    sa.UniqueConstraint("flavorid", "deleted"), sa.UniqueConstraint("name", "deleted"))

flavor_extra_specs = sa.Table(
    "flavor_extra_specs", metadata,
    sa.Column("flavor_id", key(), primary_key=True, autoincrement=False),
    sa.Column("key", text(), primary_key=True),
    sa.Column("value", text(), nullable=False))

flavor_projects = sa.Table(
    "flavor_projects", metadata,
    sa.Column("flavor_id", key(), primary_key=True, autoincrement=False),
    sa.Column("project_id", text(), primary_key=True))

keypairs = sa.Table(
    "keypairs", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("user_id", text(), nullable=False),
    sa.Column("name", text(), nullable=False),
    sa.Column("type", text(20), nullable=False),
    sa.Column("fingerprint", text(), nullable=False),
    sa.Column("public_key", sa.Text, nullable=False),
    sa.Column("created_at", moment(), nullable=False),
    sa.UniqueConstraint("user_id", "name"))

#: Users' certificates that nova-cert signed and has not revoked.
certificates = sa.Table(
    "certificates", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("user_id", text(), nullable=False),
    sa.Column("project_id", text(), nullable=False),
    sa.Column("file_name", text(), nullable=False, unique=True),
    sa.Column("ends_at", moment(), nullable=False),
    sa.Column("created_at", moment(), nullable=False),
    sa.Index("ix_certificates_user_id_project_id", "user_id", "project_id"),
    sa.Index("ix_certificates_project_id", "project_id"),
    sa.Index("ix_certificates_ends_at", "ends_at"))

#: Limits that differ from the defaults. ``user_id`` is empty for a project's own limits.
quotas = sa.Table(
    "quotas", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("project_id", text(), nullable=False),
    sa.Column("user_id", text(), nullable=False, default=""),
    sa.Column("resource", text(64), nullable=False),
    sa.Column("hard_limit", sa.Integer, nullable=False),
    sa.UniqueConstraint("project_id", "user_id", "resource"))

#: One row for each project (or user, for keypairs), locked before any change that quota counts.
quota_locks = sa.Table(
    "quota_locks", metadata,
    sa.Column("owner", text(), primary_key=True),
    sa.Column("turns", key(), nullable=False, default=0))

#: One row for each server, open until its deletion: quota sums the open ones, and ``epoch`` fences every claim.
ledger = sa.Table(
    "ledger", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("server_uuid", ident(), nullable=False, unique=True),
    sa.Column("project_id", text(), nullable=False),
    sa.Column("user_id", text(), nullable=False),
    sa.Column("cell", text(), nullable=False, default=""),
    sa.Column("vcpus", sa.Integer, nullable=False),
    sa.Column("memory_mb", sa.Integer, nullable=False),
    sa.Column("epoch", key(), nullable=False, default=1),
    sa.Column("closed", sa.Boolean, nullable=False, default=False),
    sa.Column("created_at", moment(), nullable=False),
    sa.Column("closed_at", moment()),
    sa.Column("facts", Json(ServerFacts)),  # NULL: the row is older than the column
    sa.Column("classes", Json(Mapping[str, int])),  # its amounts by resource class; NULL: likewise
    sa.Column("moved_at", moment()),  # to its cell; NULL: it never moved
    sa.Index("ix_ledger_usage", "project_id", "closed", "user_id"),
    sa.Index("ix_ledger_project_cells", "project_id", "closed", "cell"),
    sa.Index("ix_ledger_closed_at", "closed", "closed_at"),
    sa.Index("ix_ledger_moved_at", "moved_at"),
    sqlite_autoincrement=True)

#: A node of a host (host id, node UUID), a provider below one, or (with an empty ``host``) one created through the
#: Placement API. ``generation`` counts changes of inventories and allocations. ``root_id`` is NULL for a root; any
#: change in a tree locks its root first.
providers = sa.Table(
    "resource_providers", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("uuid", ident(), nullable=False, unique=True),
    sa.Column("name", text(), nullable=False),
    sa.Column("host", text(), nullable=False),
    sa.Column("host_id", ident(), nullable=False),
    sa.Column("generation", key(), nullable=False, default=1),
    sa.Column("inventory_version", key(), nullable=False, default=0),
    sa.Column("parent_id", key()),
    sa.Column("root_id", key()),
    sa.Column("topology", Json(HostTopology)),
    sa.Column("updated_at", moment()),
    sa.Index("ix_resource_providers_host", "host"),
    sa.Index("ix_resource_providers_root", "root_id"),
    sa.Index("ix_resource_providers_name", "name"),
    sqlite_autoincrement=True)

inventories = sa.Table(
    "inventories", metadata,
    sa.Column("provider_id", key(), primary_key=True, autoincrement=False),
    sa.Column("resource_class", text(64), primary_key=True),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("reserved", sa.Integer, nullable=False, default=0),
    sa.Column("min_unit", sa.Integer, nullable=False, default=1),
    sa.Column("max_unit", sa.Integer, nullable=False),
    sa.Column("step_size", sa.Integer, nullable=False, default=1),
    sa.Column("allocation_ratio", sa.Float, nullable=False, default=1.0),
    sa.Column("reported", sa.Boolean, nullable=False, default=True, server_default=sa.true()))

#: ``reported``: by the host, replaced with its next report; other rows were set through the Placement API.
provider_traits = sa.Table(
    "provider_traits", metadata,
    sa.Column("provider_id", key(), primary_key=True, autoincrement=False),
    sa.Column("trait", text(), primary_key=True),
    sa.Column("reported", sa.Boolean, nullable=False, default=False),
    sa.Index("ix_provider_traits_trait", "trait"))

#: Set through the Placement API. Memberships of hosts are in ``aggregate_hosts``.
provider_aggregates = sa.Table(
    "provider_aggregates", metadata,
    sa.Column("provider_id", key(), primary_key=True, autoincrement=False),
    sa.Column("aggregate_uuid", ident(), primary_key=True),
    sa.Index("ix_provider_aggregates_aggregate", "aggregate_uuid"))

#: Custom names, in addition to the standard ones (``nova.model.placement.traits``).
custom_traits = sa.Table("custom_traits", metadata, sa.Column("name", text(), primary_key=True),
                         sa.Column("created_at", moment(), nullable=False))
custom_classes = sa.Table("custom_classes", metadata, sa.Column("name", text(), primary_key=True),
                          sa.Column("created_at", moment(), nullable=False))

#: Consumers of the Placement API. Servers are in the ledger, with their epoch as generation.
consumers = sa.Table(
    "consumers", metadata,
    sa.Column("uuid", ident(), primary_key=True),
    sa.Column("project_id", text(), nullable=False),
    sa.Column("user_id", text(), nullable=False),
    sa.Column("consumer_type", text()),
    sa.Column("generation", key(), nullable=False, default=1),
    sa.Column("mappings", Json(Mapping[str, tuple[str, ...]])),
    sa.Column("created_at", moment(), nullable=False),
    sa.Column("updated_at", moment()),
    sa.Index("ix_consumers_project", "project_id", "user_id"))

#: ``consumer`` is a server, or a move that holds the source of ``moving``, its server. ``packing``: the PCI and NUMA
#: claim, on one of the consumer's rows for the provider.
allocations = sa.Table(
    "allocations", metadata,
    sa.Column("provider_id", key(), primary_key=True, autoincrement=False),
    sa.Column("consumer", ident(), primary_key=True),
    sa.Column("resource_class", text(64), primary_key=True),
    sa.Column("used", sa.Integer, nullable=False),
    sa.Column("moving", text(36)),
    sa.Column("packing", Json(TopologyClaim)),
    sa.Index("ix_allocations_consumer", "consumer"),
    sa.Index("ix_allocations_moving", "moving"))

#: Version stamps of data that all schedulers and conductors share, such as ``aggregates``; incremented with each
#: change.
stamps = sa.Table(
    "stamps", metadata,
    sa.Column("name", text(64), primary_key=True),
    sa.Column("version", key(), nullable=False, default=1))

#: The metadata key ``availability_zone`` makes an aggregate a zone.
aggregates = sa.Table(
    "aggregates", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("uuid", ident(), nullable=False, unique=True),
    sa.Column("name", text(), nullable=False, unique=True),
    sa.Column("created_at", moment(), nullable=False),
    sa.Column("updated_at", moment()),
    sqlite_autoincrement=True)

aggregate_hosts = sa.Table(
    "aggregate_hosts", metadata,
    sa.Column("aggregate_id", key(), primary_key=True, autoincrement=False),
    sa.Column("host", text(), primary_key=True),
    sa.Index("ix_aggregate_hosts_host", "host"))

aggregate_metadata = sa.Table(
    "aggregate_metadata", metadata,
    sa.Column("aggregate_id", key(), primary_key=True, autoincrement=False),
    sa.Column("key", text(), primary_key=True),
    sa.Column("value", text(), nullable=False))

server_groups = sa.Table(
    "server_groups", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("uuid", ident(), nullable=False, unique=True),
    sa.Column("project_id", text(), nullable=False),
    sa.Column("user_id", text(), nullable=False),
    sa.Column("name", text(), nullable=False),
    sa.Column("policy", text(32), nullable=False),
    sa.Column("rules", Json(Mapping[str, int]), nullable=False),
    sa.Column("created_at", moment(), nullable=False),
    sa.Index("ix_server_groups_project", "project_id", "id"),
    sqlite_autoincrement=True)

#: A server is in one group at most.
server_group_members = sa.Table(
    "server_group_members", metadata,
    sa.Column("server_uuid", ident(), primary_key=True),
    sa.Column("group_id", key(), nullable=False),
    sa.Column("user_id", text(), nullable=False),
    sa.Index("ix_server_group_members_group", "group_id"))

#: The limits of quota classes; ``default`` applies to projects without their own limits.
quota_classes = sa.Table(
    "quota_classes", metadata,
    sa.Column("class_name", text(), primary_key=True),
    sa.Column("resource", text(64), primary_key=True),
    sa.Column("hard_limit", sa.Integer, nullable=False))

#: EC2 ids: ``prefix-%08x`` of the row's key, which the database assigns once. A server's row is deleted with its ledger
#: row, long after the server.
ec2_ids = sa.Table(
    "ec2_ids", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("kind", text(20), nullable=False),
    sa.Column("external_id", text(64), nullable=False),
    sa.Column("created_at", moment(), nullable=False),
    sa.UniqueConstraint("kind", "external_id"),
    sqlite_autoincrement=True)

#: Cells recorded by ``nova-manage cell_v2``. URLs are encrypted, or templates; NULL means the configuration's URL.
cell_mappings = sa.Table(
    "cell_mappings", metadata,
    sa.Column("uuid", ident(), primary_key=True),
    sa.Column("name", text(), nullable=False),
    sa.Column("transport_url", long_text()),
    sa.Column("database_connection", long_text()),
    sa.Column("created_at", moment(), nullable=False),
    sa.Column("disabled", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("is_entry", sa.Boolean, nullable=False, server_default=sa.false()))  # see nova.model.host.cells

#: The generated key of cells' URLs: see nova.db.host.generated_keys.
api_settings = sa.Table(
    "api_settings", metadata,
    sa.Column("name", text(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False))

"""The cell schema as the first release has it.

Revision: 0001; follows: None
"""

import sqlalchemy as sa

from nova.db.schema.resumable import op
from nova.db.sql.types import Json, ident, key, moment, text

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "servers",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("uuid", ident(), nullable=False),
        sa.Column("deleted", key(), nullable=False),
        sa.Column("project_id", text(), nullable=False),
        sa.Column("user_id", text(), nullable=False),
        sa.Column("name", text(), nullable=False),
        sa.Column("description", text()),
        sa.Column("hostname", text()),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("updated_at", moment()),
        sa.Column("launched_at", moment()),
        sa.Column("terminated_at", moment()),
        sa.Column("deleted_at", moment()),
        sa.Column("epoch", key(), nullable=False),
        sa.Column("vm_state", text(32), nullable=False),
        sa.Column("task_state", text(64)),
        sa.Column("power_state", sa.SmallInteger, nullable=False),
        sa.Column("progress", sa.SmallInteger, nullable=False),
        sa.Column("fault", Json(object)),
        sa.Column("host", text()),
        sa.Column("node", text()),
        sa.Column("host_id", ident()),
        sa.Column("availability_zone", text()),
        sa.Column("pinned_availability_zone", text()),
        sa.Column("flavor", Json(object), nullable=False),
        sa.Column("flavorid", text(), nullable=False),
        sa.Column("image", Json(object)),
        sa.Column("image_id", text(), nullable=False),
        sa.Column("kernel_id", text(), nullable=False),
        sa.Column("ramdisk_id", text(), nullable=False),
        sa.Column("disks", Json(object)),
        sa.Column("requested_networks", Json(object)),
        sa.Column("interfaces", Json(object)),
        sa.Column("security_groups", Json(object)),
        sa.Column("root_device_name", text()),
        sa.Column("config_drive", sa.Boolean, nullable=False),
        sa.Column("disk_config", text(8), nullable=False),
        sa.Column("key_name", text()),
        sa.Column("public_key", sa.Text),
        sa.Column("key_type", text(20), nullable=False),
        sa.Column("user_data", sa.Text().with_variant(sa.Text(16777215), "mysql", "mariadb")),
        sa.Column("files", Json(object)),
        sa.Column("guest_password", sa.Text),
        sa.Column("reservation_id", text(32), nullable=False),
        sa.Column("launch_index", sa.Integer, nullable=False),
        sa.Column("scheduler_hints", Json(object)),
        sa.Column("trusted_certs", Json(object)),
        sa.Column("access_ip_v4", text(39)),
        sa.Column("access_ip_v6", text(39)),
        sa.Column("locked_by", text(8)),
        sa.Column("locked_reason", text()),
        sa.UniqueConstraint("uuid", name="uq_servers_uuid"),
        sqlite_autoincrement=True)
    op.create_index("ix_servers_created", "servers", ["deleted", "created_at", "id"])
    op.create_index("ix_servers_deleted_at", "servers", ["deleted_at"])
    op.create_index("ix_servers_host", "servers", ["host", "deleted"])
    op.create_index("ix_servers_project", "servers", ["project_id", "deleted", "created_at", "id"])
    op.create_index("ix_servers_reservation", "servers", ["reservation_id"])
    op.create_index("ix_servers_updated", "servers", ["updated_at"])
    op.create_table(
        "server_metadata",
        sa.Column("server_uuid", ident(), primary_key=True),
        sa.Column("key", text(), primary_key=True),
        sa.Column("value", text(), nullable=False))
    op.create_table(
        "server_tags",
        sa.Column("server_uuid", ident(), primary_key=True),
        sa.Column("tag", text(80), primary_key=True))
    op.create_table(
        "runners",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("name", text(), nullable=False),
        sa.Column("lease_until", moment(), nullable=False),
        sqlite_autoincrement=True)
    op.create_index("ix_runners_lease", "runners", ["lease_until"])
    op.create_table(
        "operations",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("server_uuid", ident(), nullable=False),
        sa.Column("action", text(64), nullable=False),
        sa.Column("epoch", key(), nullable=False),
        sa.Column("runner_id", key(), nullable=False),
        sa.Column("step", text(64), nullable=False),
        sa.Column("direction", text(8), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("arguments", Json(object), nullable=False),
        sa.Column("data", Json(object), nullable=False),
        sa.Column("history", Json(object), nullable=False),
        sa.Column("request_id", text(64), nullable=False),
        sa.Column("user_id", text()),
        sa.Column("project_id", text()),
        sa.Column("started_at", moment(), nullable=False),
        sa.Column("updated_at", moment()),
        sa.Column("finished_at", moment()),
        sa.Column("outcome", text(16)),
        sa.Column("fault", sa.Text),
        sqlite_autoincrement=True)
    op.create_index("ix_operations_open", "operations", ["finished_at", "runner_id"])
    op.create_index("ix_operations_request", "operations", ["request_id"])
    op.create_index("ix_operations_server", "operations", ["server_uuid", "id"])
    op.create_table(
        "owed",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("host", text(), nullable=False),
        sa.Column("server_uuid", ident(), nullable=False),
        sa.Column("epoch", key(), nullable=False),
        sa.Column("step", text(64), nullable=False),
        sa.Column("arguments", Json(object), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.UniqueConstraint("host", "server_uuid", "step", name="uq_owed_host_server_uuid_step"),
        sqlite_autoincrement=True)
    op.create_table(
        "services",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("uuid", ident(), nullable=False),
        sa.Column("host", text(), nullable=False),
        sa.Column("binary", text(64), nullable=False),
        sa.Column("topic", text(64)),
        sa.Column("host_id", text(36), nullable=False),
        sa.Column("secret", text(64), nullable=False),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sa.Column("disabled_reason", text()),
        sa.Column("forced_down", sa.Boolean, nullable=False),
        sa.Column("version", key(), nullable=False),
        sa.Column("contracts", Json(object)),
        sa.Column("release", text(64), nullable=False),
        sa.Column("last_seen_at", moment()),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("updated_at", moment()),
        sa.Column("deleted", key(), nullable=False),
        sa.UniqueConstraint("host", "binary", "deleted", name="uq_services_host_binary_deleted"),
        sa.UniqueConstraint("uuid", name="uq_services_uuid"),
        sqlite_autoincrement=True)
    op.create_table(
        "nodes",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("uuid", ident(), nullable=False),
        sa.Column("host", text(), nullable=False),
        sa.Column("host_id", ident(), nullable=False),
        sa.Column("name", text(), nullable=False),
        sa.Column("facts", Json(object), nullable=False),
        sa.Column("version", key(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("updated_at", moment()),
        sa.UniqueConstraint("uuid", name="uq_nodes_uuid"))
    op.create_index("ix_nodes_host", "nodes", ["host"])
    op.create_table(
        "networks",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("uuid", ident(), nullable=False),
        sa.Column("label", text(), nullable=False),
        sa.Column("cidr", text(43)),
        sa.Column("netmask", text(43)),
        sa.Column("broadcast", text(43)),
        sa.Column("gateway", text(43)),
        sa.Column("dhcp_start", text(43)),
        sa.Column("dhcp_server", text(43)),
        sa.Column("dns1", text(43)),
        sa.Column("dns2", text(43)),
        sa.Column("cidr_v6", text(43)),
        sa.Column("netmask_v6", text(43)),
        sa.Column("gateway_v6", text(43)),
        sa.Column("vpn_public_address", text(43)),
        sa.Column("vpn_private_address", text(43)),
        sa.Column("bridge", text(15)),
        sa.Column("bridge_interface", text(15)),
        sa.Column("vlan", sa.Integer),
        sa.Column("mtu", sa.Integer),
        sa.Column("vpn_public_port", sa.Integer),
        sa.Column("rxtx_base", sa.Integer),
        sa.Column("priority", sa.Integer),
        sa.Column("enable_dhcp", sa.Boolean, nullable=False),
        sa.Column("share_address", sa.Boolean, nullable=False),
        sa.Column("injected", sa.Boolean, nullable=False),
        sa.Column("multi_host", sa.Boolean, nullable=False),
        sa.Column("host", text()),
        sa.Column("project_id", text()),
        sa.Column("version", key(), nullable=False),
        sa.Column("created_at", moment(), nullable=False),
        sa.Column("updated_at", moment()),
        sa.UniqueConstraint("uuid", name="uq_networks_uuid"))
    op.create_table(
        "fixed_addresses",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("network_id", key(), nullable=False),
        sa.Column("address", text(39), nullable=False),
        sa.Column("reserved", sa.Boolean, nullable=False),
        sa.Column("server_uuid", ident()),
        sa.Column("vif_uuid", ident()),
        sa.Column("leased", sa.Boolean, nullable=False),
        sa.Column("host", text()),
        sa.Column("updated_at", moment()),
        sa.UniqueConstraint("network_id", "address", name="uq_fixed_addresses_network_id_address"))
    op.create_index("ix_fixed_addresses_address", "fixed_addresses", ["address"])
    op.create_index("ix_fixed_addresses_free", "fixed_addresses", ["network_id", "reserved", "server_uuid", "id"])
    op.create_index("ix_fixed_addresses_server", "fixed_addresses", ["server_uuid"])
    op.create_table(
        "vifs",
        sa.Column("id", key(), primary_key=True, autoincrement=True),
        sa.Column("uuid", ident(), nullable=False),
        sa.Column("mac", text(17), nullable=False),
        sa.Column("network_id", key(), nullable=False),
        sa.Column("server_uuid", ident(), nullable=False),
        sa.UniqueConstraint("uuid", name="uq_vifs_uuid"),
        sa.UniqueConstraint("mac", name="uq_vifs_mac"))
    op.create_index("ix_vifs_server", "vifs", ["server_uuid"])

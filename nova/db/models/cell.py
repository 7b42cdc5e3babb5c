"""The ``cell`` schema: servers and their journal, hosts and their daemons, networks and their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from nova.db.sql.types import Json, ident, key, moment, text
from nova.model.flavor.flavors import Flavor
from nova.model.guest.consoles import ConsoleAddress
from nova.model.guest.guests import ApiFacts
from nova.model.guest.orders import Disk
from nova.model.host.hosts import Node
from nova.model.host.services import ContractVersion, DatabaseConnections
from nova.model.image.images import Image
from nova.model.network.networks import Interface, PortDemand, RequestedNetwork
from nova.model.server.actions import ActionEvent
from nova.model.server.migrations import MigrationProgress
from nova.model.server.servers import Fault, ServerMemo
from nova.model.volumes import BlockDevice

#: ``sqlite_autoincrement`` for keys that must never be reused: SQLite would reuse the last row's key after its
#: deletion.
metadata = sa.MetaData(naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s",
                                          "uq": "uq_%(table_name)s_%(column_0_N_name)s"})

servers = sa.Table(
    "servers", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("uuid", ident(), nullable=False, unique=True),
    sa.Column("deleted", key(), nullable=False, default=0),
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
    sa.Column("archived_at", moment()),  # of a deleted server, which no list shows from then on
    # states: written only by nova.db.server.states
    sa.Column("epoch", key(), nullable=False, default=1),
    sa.Column("console_epoch", key(), nullable=False, default=0, server_default="0"),  # older consoles are invalid
    sa.Column("vm_state", text(32), nullable=False),
    sa.Column("task_state", text(64)),
    sa.Column("power_state", sa.SmallInteger, nullable=False, default=0),
    sa.Column("progress", sa.SmallInteger, nullable=False, default=0),
    sa.Column("fault", Json(Fault)),
    # location
    sa.Column("host", text()),
    sa.Column("node", text()),
    sa.Column("host_id", ident()),
    sa.Column("availability_zone", text()),
    sa.Column("pinned_availability_zone", text()),
    # contents
    sa.Column("flavor", Json(Flavor), nullable=False),
    sa.Column("flavorid", text(), nullable=False),
    sa.Column("image", Json(Image)),
    sa.Column("image_id", text(), nullable=False, default=""),
    sa.Column("kernel_id", text(), nullable=False, default=""),
    sa.Column("ramdisk_id", text(), nullable=False, default=""),
    sa.Column("disks", Json(tuple[Disk, ...])),
    sa.Column("requested_networks", Json(tuple[RequestedNetwork, ...])),
    sa.Column("interfaces", Json(tuple[Interface, ...])),
    sa.Column("port_demands", Json(tuple[PortDemand, ...])),  # requirements of its ports on hosts
    sa.Column("volumes", Json(tuple[BlockDevice, ...])),
    sa.Column("security_groups", Json(tuple[str, ...])),
    sa.Column("root_device_name", text()),
    sa.Column("config_drive", sa.Boolean, nullable=False, default=False),
    sa.Column("disk_config", text(8), nullable=False, default="MANUAL"),
    sa.Column("key_name", text()),
    sa.Column("public_key", sa.Text),
    sa.Column("key_type", text(20), nullable=False, default="ssh"),
    sa.Column("user_data", sa.Text().with_variant(sa.Text(16777215), "mysql", "mariadb")),
    sa.Column("files", Json(Mapping[str, str])),
    sa.Column("guest_password", sa.Text),
    # the request
    sa.Column("reservation_id", text(32), nullable=False, default=""),
    sa.Column("launch_index", sa.Integer, nullable=False, default=0),
    sa.Column("scheduler_hints", Json(Mapping[str, Any])),
    sa.Column("trusted_certs", Json(tuple[str, ...])),
    sa.Column("access_ip_v4", text(39)),
    sa.Column("access_ip_v6", text(39)),
    sa.Column("locked_by", text(8)),
    sa.Column("locked_reason", text()),
    sa.Column("memo", Json(ServerMemo)),
    sa.Column("instance_name", text()),  # of a server from another cell, whose key the name was made of
    # the default order; vm_state (a column of the list's own filter) makes the index sufficient to find a page
    sa.Index("ix_servers_project_newest", "project_id", "deleted", "created_at", "id", "vm_state"),
    sa.Index("ix_servers_newest", "deleted", "created_at", "id", "vm_state"),
    sa.Index("ix_servers_host", "host", "deleted"),
    sa.Index("ix_servers_updated", "updated_at"),
    sa.Index("ix_servers_reservation", "reservation_id"),
    sa.Index("ix_servers_deleted_at", "deleted_at"),
    # Lists of all projects by the most frequent filters and sort keys, and a project's by name. Others scan the
    # project's servers: each index costs every create, so not each of the 30 keys has one.
    sa.Index("ix_servers_name", "deleted", "name", "id"),
    sa.Index("ix_servers_user", "deleted", "user_id", "id"),
    sa.Index("ix_servers_image", "deleted", "image_id", "id"),
    sa.Index("ix_servers_flavor", "deleted", "flavorid", "id"),
    sa.Index("ix_servers_tasks", "deleted", "task_state", "id", "host"),  # includes the columns that count busy hosts
    sa.Index("ix_servers_project_name", "project_id", "deleted", "name", "id"),
    sa.Index("ix_servers_vm_state", "deleted", "vm_state", "updated_at"),  # for periodic tasks
    sa.Index("ix_servers_usage", "project_id", "uuid", "launched_at", "terminated_at"),
    sqlite_autoincrement=True)

server_metadata = sa.Table(
    "server_metadata", metadata,
    sa.Column("server_uuid", ident(), primary_key=True),
    sa.Column("key", text(), primary_key=True),
    sa.Column("value", text(), nullable=False))

server_tags = sa.Table(
    "server_tags", metadata,
    sa.Column("server_uuid", ident(), primary_key=True),
    sa.Column("tag", text(80), primary_key=True),
    sa.Index("ix_server_tags_tag", "tag", "server_uuid"))

#: Console tokens, valid only for ``host`` and ``epoch`` (the server's at the time of creation).
console_tokens = sa.Table(
    "console_auth_tokens", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("token_hash", text(64), nullable=False, unique=True),
    sa.Column("console_type", text(32), nullable=False),
    sa.Column("server_uuid", ident(), nullable=False),
    sa.Column("host", text(), nullable=False),
    sa.Column("epoch", key(), nullable=False),
    sa.Column("user_id", text(), nullable=False),
    sa.Column("address", Json(ConsoleAddress), nullable=False),
    sa.Column("expires_at", sa.BigInteger, nullable=False),  # seconds since 1970
    sa.Column("used_at", moment()),
    sa.Column("created_at", moment(), nullable=False),
    sa.Index("ix_console_auth_tokens_server", "server_uuid"),
    sa.Index("ix_console_auth_tokens_expires", "expires_at"))

#: Runner processes and their leases, by the database's clock. ``acknowledged``: the newest epoch change it has seen.
runners = sa.Table(
    "runners", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("name", text(), nullable=False),
    sa.Column("lease_until", moment(), nullable=False),
    sa.Index("ix_runners_lease", "lease_until"),
    sqlite_autoincrement=True)

#: The journal: one row for each operation on a server. ``step``: the step whose intent is written; ``direction``: do or
#: undo. Unfinished rows belong to ``runner_id``.
operations = sa.Table(
    "operations", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("server_uuid", ident(), nullable=False),
    sa.Column("action", text(64), nullable=False),
    sa.Column("epoch", key(), nullable=False),
    sa.Column("runner_id", key(), nullable=False),
    sa.Column("step", text(64), nullable=False, default=""),
    sa.Column("direction", text(8), nullable=False, default="do"),
    sa.Column("attempt", sa.Integer, nullable=False, default=1),
    sa.Column("arguments", Json(Mapping[str, Any]), nullable=False),
    sa.Column("data", Json(Mapping[str, Any]), nullable=False),
    sa.Column("history", Json(tuple[ActionEvent, ...]), nullable=False),
    sa.Column("request_id", text(64), nullable=False),
    sa.Column("user_id", text()),
    sa.Column("project_id", text()),
    sa.Column("started_at", moment(), nullable=False),
    sa.Column("updated_at", moment()),
    sa.Column("finished_at", moment()),
    sa.Column("outcome", text(16)),  # success, error, overtaken
    sa.Column("fault", sa.Text),
    sa.Index("ix_operations_server", "server_uuid", "id"),
    sa.Index("ix_operations_request", "request_id"),
    sa.Index("ix_operations_open", "finished_at", "runner_id"),
    sqlite_autoincrement=True)

cleanups = sa.Table(  # the table's name dates from the first release
    "owed", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("host", text(), nullable=False),
    sa.Column("server_uuid", ident(), nullable=False),
    sa.Column("epoch", key(), nullable=False),
    sa.Column("step", text(64), nullable=False),
    sa.Column("arguments", Json(Mapping[str, str]), nullable=False),
    sa.Column("created_at", moment(), nullable=False),
    sa.Column("done_at", moment()),  # by the host, in a cell; its claim is not released yet
    sa.UniqueConstraint("host", "server_uuid", "step"),
    sqlite_autoincrement=True)

services = sa.Table(
    "services", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("uuid", ident(), nullable=False, unique=True),
    sa.Column("host", text(), nullable=False),
    sa.Column("binary", text(64), nullable=False),
    sa.Column("topic", text(64)),
    sa.Column("host_id", text(36), nullable=False, default=""),
    sa.Column("secret", text(64), nullable=False, default=""),  # of the release before; see enrolments
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    sa.Column("disabled_reason", text()),
    sa.Column("forced_down", sa.Boolean, nullable=False, default=False),
    sa.Column("version", key(), nullable=False, default=1),
    sa.Column("contracts", Json(tuple[ContractVersion, ...])),
    sa.Column("release", text(64), nullable=False, default=""),
    sa.Column("connections", Json(DatabaseConnections)),
    sa.Column("clock_off_s", sa.Float),
    sa.Column("last_seen_at", moment()),
    sa.Column("created_at", moment(), nullable=False),
    sa.Column("updated_at", moment()),
    sa.Column("deleted", key(), nullable=False, default=0),
    sa.UniqueConstraint("host", "binary", "deleted"),
    sa.Index("ix_services_deleted", "deleted"),
    sqlite_autoincrement=True)

enrolments = sa.Table(
    "enrolments", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("host", text(), nullable=False, unique=True),
    sa.Column("runs", Json(tuple[str, ...]), nullable=False),
    sa.Column("addresses", Json(tuple[str, ...]), nullable=False),  # where its consoles may be; empty: not set yet
    sa.Column("token", text(), nullable=False),  # wrapped, as the next two; see nova.model.security.secret_wrap
    sa.Column("token_until", moment()),
    sa.Column("secret", text(), nullable=False),  # authenticates messages from and to the host
    sa.Column("former", text(), nullable=False),  # the previous secret
    sa.Column("former_until", moment()),
    sa.Column("version", key(), nullable=False),
    sa.Column("enrolled_at", moment(), nullable=False),
    sa.Column("joined_at", moment()),  # when it registered its secret
    sa.Column("expelled_at", moment()),
    # By resource class; see nova.model.placement.accepted_capacity.
    sa.Column("accepted_room", Json(Mapping[str, int])),
    sa.Column("claimed_room", Json(Mapping[str, int])),
    sa.Column("isolated_at", moment()),  # restricted to the hosts' own vhost since then
    sa.Column("may_return", sa.Boolean, nullable=False, server_default=sa.false()),  # to the other vhost
    sqlite_autoincrement=True)

#: The cloud's security mode, and its generated key: see nova.db.host.security and generated_keys.
security_settings = sa.Table(
    "security_settings", metadata,
    sa.Column("name", text(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False))

taken_messages = sa.Table(
    "taken_messages", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("digest", text(32), nullable=False, unique=True),  # of a host and a message's id
    sa.Column("taken_at", moment(), nullable=False),
    sa.Index("ix_taken_messages_taken_at", "taken_at"))

nodes = sa.Table(
    "nodes", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("uuid", ident(), nullable=False, unique=True),
    sa.Column("host", text(), nullable=False),
    sa.Column("host_id", ident(), nullable=False),
    sa.Column("name", text(), nullable=False),
    sa.Column("facts", Json(Node), nullable=False),
    sa.Column("version", key(), nullable=False, default=0),
    sa.Column("created_at", moment(), nullable=False),
    sa.Column("updated_at", moment()),
    sa.Index("ix_nodes_host", "host"))

networks = sa.Table(
    "networks", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("uuid", ident(), nullable=False, unique=True),
    sa.Column("label", text(), nullable=False),
    *[sa.Column(name, text(43)) for name in (
        "cidr", "netmask", "broadcast", "gateway", "dhcp_start", "dhcp_server", "dns1", "dns2", "cidr_v6",
        "netmask_v6", "gateway_v6", "vpn_public_address", "vpn_private_address")],
    sa.Column("bridge", text(15)),
    sa.Column("bridge_interface", text(15)),
    sa.Column("vlan", sa.Integer),
    sa.Column("mtu", sa.Integer),
    sa.Column("vpn_public_port", sa.Integer),
    sa.Column("rxtx_base", sa.Integer),
    sa.Column("priority", sa.Integer),
    *[sa.Column(name, sa.Boolean, nullable=False, default=default) for name, default in (
        ("enable_dhcp", True), ("share_address", False), ("injected", False), ("multi_host", False))],
    sa.Column("host", text()),
    sa.Column("project_id", text()),
    sa.Column("version", key(), nullable=False, default=1),
    sa.Column("created_at", moment(), nullable=False),
    sa.Column("updated_at", moment()))

#: One row for each address of a network's pool; free if neither reserved nor a server's.
fixed_addresses = sa.Table(
    "fixed_addresses", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("network_id", key(), nullable=False),
    sa.Column("address", text(39), nullable=False),
    sa.Column("reserved", sa.Boolean, nullable=False, default=False),
    sa.Column("server_uuid", ident()),
    sa.Column("vif_uuid", ident()),
    sa.Column("leased", sa.Boolean, nullable=False, default=False),
    sa.Column("host", text()),  # the server's host; without a server: the host whose own address it is (multi-host)
    sa.Column("left_at", moment()),  # released by its server, but still leased: not free yet
    sa.Column("updated_at", moment()),
    sa.UniqueConstraint("network_id", "address"),
    sa.Index("ix_fixed_addresses_free", "network_id", "reserved", "server_uuid", "id"),
    sa.Index("ix_fixed_addresses_server", "server_uuid"),
    sa.Index("ix_fixed_addresses_host", "host", "network_id"),
    sa.Index("ix_fixed_addresses_left", "left_at"),
    sa.Index("ix_fixed_addresses_address", "address"))

vifs = sa.Table(
    "vifs", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("uuid", ident(), nullable=False, unique=True),
    sa.Column("mac", text(17), nullable=False, unique=True),
    sa.Column("network_id", key(), nullable=False),
    sa.Column("server_uuid", ident(), nullable=False),
    sa.Index("ix_vifs_server", "server_uuid"))

#: One row for each floating IP. Free if ``project_id`` is NULL; associated with ``fixed_address_id``.
floating_addresses = sa.Table(
    "floating_addresses", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("address", text(39), nullable=False, unique=True),
    sa.Column("pool", text(), nullable=False),
    sa.Column("interface", text(15)),
    sa.Column("project_id", text()),
    sa.Column("fixed_address_id", key()),
    sa.Column("host", text()),  # the network host that has it
    sa.Column("auto_assigned", sa.Boolean, nullable=False, default=False),
    sa.Column("updated_at", moment()),
    sa.Index("ix_floating_addresses_pool", "pool", "project_id", "id"),
    sa.Index("ix_floating_addresses_project", "project_id"),
    sa.Index("ix_floating_addresses_fixed", "fixed_address_id"))

#: One row for each project that used nova-network resources under quota, locked before they are counted.
network_quota_locks = sa.Table(
    "network_quota_locks", metadata,
    sa.Column("owner", text(), primary_key=True),
    sa.Column("turns", key(), nullable=False, default=0))

dns_domains = sa.Table(
    "dns_domains", metadata,
    sa.Column("domain", text(), primary_key=True),
    sa.Column("scope", text(16), nullable=False),  # private or public
    sa.Column("availability_zone", text()),
    sa.Column("project_id", text()))

security_groups = sa.Table(
    "security_groups", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("project_id", text(), nullable=False),
    sa.Column("user_id", text()),
    sa.Column("name", text(), nullable=False),
    sa.Column("description", text()),
    sa.Column("created_at", moment(), nullable=False),
    sa.UniqueConstraint("project_id", "name"))

#: Traffic allowed to a group's members: from ``cidr``, or from the members of ``source_id``.
security_group_rules = sa.Table(
    "security_group_rules", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("group_id", key(), nullable=False),
    sa.Column("protocol", text(16)),
    sa.Column("from_port", sa.Integer),
    sa.Column("to_port", sa.Integer),
    sa.Column("cidr", text(43)),
    sa.Column("source_id", key()),
    sa.Index("ix_security_group_rules_group", "group_id"),
    sa.Index("ix_security_group_rules_source", "source_id"))

security_group_members = sa.Table(
    "security_group_members", metadata,
    sa.Column("group_id", key(), primary_key=True, autoincrement=False),
    sa.Column("server_uuid", ident(), primary_key=True),
    sa.Index("ix_security_group_members_server", "server_uuid"))

#: ``kind``: default (copied into each new project's default group) or provider (dropped on every host).
common_rules = sa.Table(
    "common_rules", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("kind", text(16), nullable=False),
    sa.Column("protocol", text(16)),
    sa.Column("from_port", sa.Integer),
    sa.Column("to_port", sa.Integer),
    sa.Column("cidr", text(43)))

#: Volumes in use, by server.
volume_holders = sa.Table(  # holder: "" for a single-attach volume, else the server
    "volume_holders", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("volume_id", ident(), nullable=False),
    sa.Column("server_uuid", ident(), nullable=False),
    sa.Column("holder", text(36), nullable=False),
    sa.Column("created_at", moment(), nullable=False),
    sa.UniqueConstraint("volume_id", "holder"),
    sa.Index("ix_volume_holders_server_uuid", "server_uuid"))

#: Facts that guests ask for and the api database has, in a cell: see nova.db.server.guest_facts.
guest_facts = sa.Table(
    "guest_facts", metadata,
    sa.Column("server_uuid", ident(), primary_key=True),
    sa.Column("epoch", key(), nullable=False),
    sa.Column("host", text(), nullable=False),
    sa.Column("wanted", sa.Boolean, nullable=False),
    sa.Column("facts", Json(ApiFacts)),
    sa.Column("asked_at", moment(), nullable=False),
    sa.Index("ix_guest_facts_wanted", "wanted"))

volume_cleanups = sa.Table(  # pending cleanups in the volume service
    "volume_cleanups", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("kind", text(16), nullable=False),
    sa.Column("what", text(36), nullable=False),
    sa.Column("server_uuid", ident(), nullable=False),
    sa.Column("tries", sa.Integer, nullable=False, default=0),
    sa.Column("due_at", moment(), nullable=False),
    sa.Column("created_at", moment(), nullable=False),
    sa.UniqueConstraint("kind", "what", "server_uuid"),
    sa.Index("ix_volume_cleanups_due_at", "due_at"),
    sa.Index("ix_volume_cleanups_server_uuid", "server_uuid"))

#: Moves of servers between hosts, and resizes, as the API shows them; kept after they end.
migrations = sa.Table(
    "migrations", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("uuid", ident(), nullable=False, unique=True),
    sa.Column("server_uuid", ident(), nullable=False),
    sa.Column("type", text(16), nullable=False),  # migration, resize, live-migration, evacuation
    sa.Column("status", text(32), nullable=False),
    sa.Column("user_id", text()),
    sa.Column("project_id", text()),
    sa.Column("source_compute", text()),
    sa.Column("source_node", text()),
    sa.Column("dest_compute", text()),
    sa.Column("dest_node", text()),
    sa.Column("dest_host", text()),  # its address
    sa.Column("old_flavor", Json(Flavor)),
    sa.Column("new_flavor", Json(Flavor)),
    sa.Column("progress", Json(MigrationProgress)),
    sa.Column("created_at", moment(), nullable=False),
    sa.Column("updated_at", moment()),
    sa.Index("ix_migrations_server", "server_uuid", "id"),
    sa.Index("ix_migrations_source", "source_compute", "id"),
    sa.Index("ix_migrations_dest", "dest_compute", "id"),
    sa.Index("ix_migrations_created", "created_at", "id"),
    sa.Index("ix_migrations_updated", "updated_at"),
    sa.Index("ix_migrations_status", "status", "id"),
    sqlite_autoincrement=True)

#: One row for each host and audit period: whether ``compute.instance.exists`` was sent for each of its servers.
usage_audits = sa.Table(
    "usage_audits", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("host", text(), nullable=False),
    sa.Column("period_beginning", moment(), nullable=False),
    sa.Column("period_ending", moment(), nullable=False),
    sa.Column("state", text(16), nullable=False),  # RUNNING, DONE
    sa.Column("servers", sa.Integer, nullable=False, default=0),
    sa.Column("errors", sa.Integer, nullable=False, default=0),
    sa.Column("message", text()),
    sa.Column("runner_id", key(), nullable=False, default=0),  # the runner whose lease holds it while RUNNING
    sa.UniqueConstraint("host", "period_beginning", "period_ending"),
    sa.Index("ix_usage_audits_period", "period_ending"),
    sqlite_autoincrement=True)

#: Orphans: objects of hosts or the ledger that no record explains. ``ended``: 0, or the row's own id once closed.
strangers = sa.Table(
    "strangers", metadata,
    sa.Column("id", key(), primary_key=True, autoincrement=True),
    sa.Column("kind", text(16), nullable=False),  # of nova.model.guest.orphans.OrphanKind
    sa.Column("host", text(), nullable=False),
    sa.Column("name", text(), nullable=False),  # distinguishes orphans of one kind and host
    sa.Column("server_uuid", ident(), nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("epoch", key(), nullable=False, default=-1),
    sa.Column("first_seen_at", moment(), nullable=False),
    sa.Column("ordered_at", moment()),  # when its removal was ordered
    sa.Column("ended_at", moment()),
    sa.Column("ending", text(64), nullable=False, default=""),
    sa.Column("ended", key(), nullable=False, default=0),
    sa.UniqueConstraint("host", "kind", "name", "ended"),
    sa.Index("ix_strangers_ended", "ended", "ended_at"),
    sa.Index("ix_strangers_ended_at", "ended_at"),
    sqlite_autoincrement=True)

#: The progress of walks through all rows, and the end of a conductor's current turn.
audit_walks = sa.Table(
    "audit_walks", metadata,
    sa.Column("name", text(64), primary_key=True),
    sa.Column("after", text(64), nullable=False, default=""),
    sa.Column("taken_until", moment(), nullable=False),
    sa.Column("passed_at", moment()))  # when it last reached the end

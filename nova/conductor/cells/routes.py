"""The route of each call of ConductorRPC to its cell: by the server or the host that it names, or the entry cell.

Calls about several cells are in the other modules of this package. :func:`assemble_cells` finds exactly one
implementation for every call of the contract.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
from collections.abc import Callable, Mapping
from typing import cast

import msgspec

from nova import errors
from nova.conductor.assembled import Assembled, assemble
from nova.conductor.cells.fan_out import PerCell
from nova.conductor.cells.live_cells import LiveCells
from nova.conductor.engine.deps import Deps
from nova.conductor.queries.servers import or_unknown
from nova.model.server.servers import ServerDetail, ServerQuery
from nova.rpc.contracts.conductor import ConductorRPC

#: Calls about one server -> where its UUID is in the first argument (empty: the argument itself).
BY_SERVER: Mapping[str, str] = {
    **dict.fromkeys((
        "get_target", "update_server", "order_server", "rebuild_server", "resize_server",
        "migrate_server", "live_migrate_server", "evacuate_server", "create_image", "create_backup", "rescue_server",
        "change_password", "unshelve_server", "abort_live_migration", "force_live_migration", "lock_server",
        "change_metadata", "get_console_output", "change_tags", "get_server_password", "get_server_topology",
        "reset_state", "list_server_migrations", "get_server_migration", "list_server_volumes", "list_interfaces",
        "list_server_security_groups"), "uuid"),
    **dict.fromkeys((
        "list_actions", "get_action", "change_group_membership", "associate_floating_address",
        "disassociate_floating_address"), "server_uuid"),
    "keep_console": "wish.server_uuid",
    **dict.fromkeys((
        "clear_server_password", "get_diagnostics", "attach_volume", "detach_volume", "swap_volume", "keep_volume",
        "refresh_attachment", "attach_interface", "detach_interface", "add_fixed_address", "remove_fixed_address"), "")}

#: Of them, the calls that change a server without an operation, and that may be repeated.
CHANGES = frozenset({"update_server", "lock_server", "change_metadata", "change_tags"})

#: Calls about one compute host -> where its name is in the first argument, likewise.
BY_HOST: Mapping[str, str] = {"get_host_usage": "", "host_connector": "", "change_host_power": "host"}

#: Calls that one cell answers for all: they use the api database, other services, or the data of control daemons.
BY_ENTRY = frozenset({
    "create_servers", "list_images", "get_image", "delete_image", "update_image_properties", "register", "heartbeat",
    "get_clock", "ping", "get_host_states",
    "list_server_groups", "get_server_group", "create_server_group", "delete_server_group",
    "list_flavors", "get_flavor", "create_flavor", "update_flavor", "delete_flavor", "set_flavor_specs",
    "delete_flavor_spec", "change_flavor_access", "list_keypairs", "get_keypair", "create_keypair", "delete_keypair",
    "keep_certificate", "list_certificates", "forget_certificates",
    "get_quotas", "get_default_quotas", "update_quotas", "delete_quotas", "get_quota_class", "update_quota_class",
    "list_aggregates", "get_aggregate", "create_aggregate", "update_aggregate", "set_aggregate_metadata",
    "delete_aggregate", "add_aggregate_host", "remove_aggregate_host", "cache_images",
    "list_networks", "get_network", "create_network", "delete_network", "delete_own_network", "change_network",
    "add_network_to_project", "list_fixed_addresses", "get_fixed_address", "reserve_fixed_address",
    "list_floating_pools", "list_floating_addresses", "get_floating_address", "allocate_floating_address",
    "release_floating_address", "create_floating_addresses", "delete_floating_addresses", "list_dns_domains",
    "put_dns_domain", "delete_dns_domain", "list_dns_entries", "put_dns_entry", "delete_dns_entry",
    "list_security_groups", "get_security_group", "create_security_group", "update_security_group",
    "delete_security_group", "create_security_rule", "delete_security_rule", "list_default_rules", "get_default_rule",
    "create_default_rule", "delete_default_rule", "list_provider_rules", "create_provider_rule",
    "delete_provider_rule", "list_cloudpipes", "create_cloudpipe", "configure_vpn",
    "list_volumes", "get_volume", "create_volume", "delete_volume", "change_volume_metadata",
    "list_volume_snapshots", "get_volume_snapshot", "create_volume_snapshot", "delete_volume_snapshot",
    "assign_ec2_numbers", "get_ec2_ids", "register_image", "update_image"})

#: The services of the cells: the implementation of the whole contract in each.
Services = PerCell[ConductorRPC]


class RoutedCalls:
    """The calls of the tables above, as methods. A cell that does not answer keeps a bounded number of calls."""

    def __init__(self, cells: LiveCells, services: Services) -> None:
        self.cells, self._services = cells, services
        by: tuple[tuple[Mapping[str, str], Callable[[str], Deps]], ...] = (
            (BY_SERVER, cells.of_server), (BY_HOST, cells.of_host))
        for table, cell_of in by:
            for name, path in table.items():
                self._add(name, functools.partial(self._call, name, _reader(path), cell_of))
        for name in BY_ENTRY:
            self._add(name, functools.partial(self._call_entry, name))

    def _add(self, name: str, call: functools.partial[object]) -> None:
        """Add a method with the contract's parameters, which servers compare."""
        _self, *parameters = ConductorRPC.methods[name].signature.parameters.values()
        vars(call)["__signature__"] = inspect.Signature(parameters)
        setattr(self, name, call)

    def _call(self, name: str, read: Callable[[object], str], cell_of: Callable[[str], Deps], /,
              *args: object, **kwargs: object) -> object:
        method = ConductorRPC.methods[name]
        first = method.named(args, kwargs)[method.arguments.__struct_fields__[0]]
        cell = cell_of(read(first))

        def call(cell: Deps) -> object:
            return getattr(self._services(cell), name)(*args, **kwargs)
        if not self.cells.several:
            return call(cell)
        with contextlib.suppress(errors.server.NotFound), self.cells.fan_out.turn(cell):
            result = call(cell)
            # a conductor that died while it moved the server may have left a row here, which is removed soon
            if name not in CHANGES or cell_of(read(first)) is cell:
                return result
        cell = cell_of(read(first))  # a new server may have moved to the cell of its host in between
        with self.cells.fan_out.turn(cell):
            return call(cell)

    def get_server(self, query: ServerQuery) -> ServerDetail:
        """Return a server as :meth:`nova.conductor.queries.servers.Servers.get_server`. ``with_unknown``: a server of a
        cell that does not answer has what the ledger knows."""
        known = msgspec.structs.replace(query, with_unknown=False)  # a cell must not hide that it is away
        return or_unknown(self.cells.entry, query, lambda: self._read_server(known))

    def _read_server(self, query: ServerQuery) -> ServerDetail:
        return cast(ServerDetail, self._call("get_server", _reader("uuid"), self.cells.of_server, query))

    def _call_entry(self, name: str, /, *args: object, **kwargs: object) -> object:
        return getattr(self._services(self.cells.entry), name)(*args, **kwargs)


def _reader(path: str) -> Callable[[object], str]:
    return operator.attrgetter(path) if path else str


def assemble_cells(cells: LiveCells, services: Services, *parts: object) -> Assembled:
    """Return the service over all cells. ``parts``: the calls about several cells. Raises TypeError if a call has no
    implementation, or several."""
    return assemble(ConductorRPC, RoutedCalls(cells, services), *parts)

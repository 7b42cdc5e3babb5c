"""Ports of FakeNeutron, and their bindings to hosts. Without agents, a port is ACTIVE as soon as it is bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nova.devel.network import addresses
from nova.devel.network.crud import NetworkResource, tag_routes
from nova.devel.network.kinds import FLOATING, GROUP, NETWORK, PORT, NetworkError, is_privileged
from nova.devel.network.records import BindingRecord, NetworkRecord, PortRecord
from nova.devel.network.store import FakeNetworkStore, forbidden, is_own, touch
from nova.devel.service import FakeAnswer, FakeCall, FakeRoute, TokenOwner
from nova.model.base import JsonValue

INTERFACE, GATEWAY_PORT, FLOATING_PORT = "network:router_interface", "network:router_gateway", "network:floatingip"
OF_ROUTERS = (INTERFACE, GATEWAY_PORT, FLOATING_PORT)
CHANGED, PLUGGED, UNPLUGGED, DELETED = ("network-changed", "network-vif-plugged", "network-vif-unplugged",
                                        "network-vif-deleted")
OF_BINDING = ("binding:host_id", "binding:profile", "binding:vnic_type", "admin_state_up")


def make(store: FakeNetworkStore, caller: TokenOwner, project_id: str, given: PortRecord) -> PortRecord:
    """Create a port for a client. Raises 400, 403, 404, or 409 if addresses are in use or none is free."""
    network = store.seen(NETWORK, given["network_id"], caller)
    if not (is_privileged(caller) or network["shared"] or is_own(network, caller)):
        raise NetworkError(403, "HTTPForbidden", f"Tenant {project_id} not allowed to create port on this network")
    _check_owner(given, network, caller)
    secure = bool(given.get("port_security_enabled", network["port_security_enabled"]))
    groups = _groups(store, caller, project_id, given.get("security_groups"), secure)
    return place(store, network, project_id, {**given, "port_security_enabled": secure, "security_groups": groups})


def place(store: FakeNetworkStore, network: NetworkRecord, project_id: str, members: PortRecord) -> PortRecord:
    """Create a port for any owner, with a MAC, addresses, and a binding if it has a host. Raises 400 or 409."""
    mac = (members.get("mac_address") or addresses.new_mac(store)).lower()
    _check_mac(store, network["id"], mac)
    fixed_ips = addresses.allocate(store, network["id"], members.get("fixed_ips"), mac)
    port = store.insert(PORT, project_id, {
        "port_security_enabled": False, "security_groups": [], **members, "network_id": network["id"],
        "mac_address": mac, "fixed_ips": fixed_ips, "status": "DOWN",
        "ip_allocation": "immediate" if fixed_ips else "none"})
    port["binding:host_id"], port["binding:profile"] = port["binding:host_id"] or "", port["binding:profile"] or {}
    _bind(store, port)
    return port


def change(store: FakeNetworkStore, caller: TokenOwner, port: PortRecord, given: PortRecord) -> None:
    """Change a port, and notify nova of its addresses and its connection. Raises 400, 403, 404 or 409."""
    network = store.of(NETWORK)[port["network_id"]]
    _check_owner(given, network, caller)
    before = port["status"]
    fields: PortRecord = {**given}
    if "mac_address" in fields and fields["mac_address"].lower() != port["mac_address"]:
        fields["mac_address"] = fields["mac_address"].lower()
        _check_mac(store, network["id"], fields["mac_address"])
    if "fixed_ips" in fields:
        fields["fixed_ips"] = addresses.allocate(store, network["id"], fields["fixed_ips"] or [],
                                                         port["mac_address"], port["id"])
    secure = bool(fields.get("port_security_enabled", port["port_security_enabled"]))
    if "security_groups" in fields or not secure:
        wanted = fields.get("security_groups", port["security_groups"]) or []
        fields["security_groups"] = _groups(store, caller, port["project_id"], wanted, secure)
    changed = "fixed_ips" in fields and fields["fixed_ips"] != port["fixed_ips"]
    touch(port, {name: {} if name == "binding:profile" and value is None else value or (
        "" if name == "binding:host_id" else value) for name, value in fields.items()})
    if any(name in fields for name in OF_BINDING):
        _bind(store, port)
    if changed:
        _follow(store, port)
        store.tell(CHANGED, port)
    if port["status"] != before:
        store.tell(PLUGGED if port["status"] == "ACTIVE" else UNPLUGGED, port)


def remove(store: FakeNetworkStore, caller: TokenOwner, port: PortRecord) -> None:
    """Delete a port. Raises 409 if it is a router's."""
    if port["device_owner"] in OF_ROUTERS and port["device_id"]:
        raise NetworkError(409, "ServicePortInUse", f"Port {port['id']} cannot be deleted directly via the port API: "
                           f"has device owner {port['device_owner']}.")
    forget(store, port)


def forget(store: FakeNetworkStore, port: PortRecord) -> None:
    """Delete a port of any owner, and disassociate its floating addresses."""
    store.remove(PORT, port)
    store.bindings.pop(port["id"], None)
    _follow(store, {**port, "fixed_ips": []})
    store.tell(DELETED, port)


def _follow(store: FakeNetworkStore, port: PortRecord) -> None:
    """Disassociate floating addresses from addresses that the port no longer has."""
    has = [one["ip_address"] for one in port["fixed_ips"]]
    for floating in store.where(FLOATING, port_id=port["id"]):
        if floating["fixed_ip_address"] not in has:
            touch(floating, {"port_id": None, "fixed_ip_address": None, "router_id": None, "status": "DOWN"})


def _check_owner(given: PortRecord, network: NetworkRecord, caller: TokenOwner) -> None:
    """Raise 403 for members that only the network's owner may set, and for device owners of routers' ports."""
    if is_privileged(caller):
        return
    if given.get("device_owner", "").startswith("network:"):
        raise forbidden("create_port:device_owner")
    own, asked = is_own(network, caller), dict(given)
    for name in ("mac_address", "port_security_enabled", "allowed_address_pairs"):
        if asked.get(name) not in (None, []) and not own:
            raise forbidden(f"create_port:{name}")


def _check_mac(store: FakeNetworkStore, network_id: str, mac: str) -> None:
    if store.where(PORT, network_id=network_id, mac_address=mac):
        raise NetworkError(409, "MacAddressInUse", f"Unable to complete operation for network {network_id}. The mac "
                           f"address {mac} is in use.")


def _groups(store: FakeNetworkStore, caller: TokenOwner, project_id: str, wanted: Sequence[str] | None,
            secure: bool) -> list[str]:
    """Return a port's groups; the project's default group if none are given. Raises 404, or 409 for groups without port
    security."""
    if wanted and not secure:
        raise NetworkError(409, "PortSecurityPortHasSecurityGroup", "Port has security group associated. Cannot "
                           "disable port security or IP address until security group is removed.")
    if wanted is None:
        return [store.default_group(project_id)["id"]] if secure and project_id else []
    for one in wanted:
        if store.seen(GROUP, one, caller)["project_id"] != project_id:
            raise GROUP.missing(one)
    return list(dict.fromkeys(wanted))


# --- bindings


def _bind(store: FakeNetworkStore, port: PortRecord) -> None:
    """Set the active binding from the port; inactive bindings to other hosts may exist."""
    host, mine = port["binding:host_id"], store.bindings.setdefault(port["id"], {})
    for other in [name for name, one in mine.items() if one["status"] == "ACTIVE" and name != host]:
        del mine[other]
    if host:
        mine[host] = _binding(host, port["binding:vnic_type"], port["binding:profile"], "ACTIVE")
    connected = bool(host) or port["device_owner"] in OF_ROUTERS
    port["status"] = "ACTIVE" if connected and port["admin_state_up"] else "DOWN"


def _binding(host: str, vnic_type: str, profile: Mapping[str, JsonValue], status: str) -> BindingRecord:
    normal = vnic_type == "normal"
    return {"host": host, "vif_type": "ovs" if normal else "hw_veb", "vnic_type": vnic_type, "profile": dict(profile),
            "status": status, "vif_details": {"port_filter": True, "connectivity": "l2"} if normal else {"vlan": "0"}}


def privileged(call: FakeCall) -> bool:
    """Return whether the caller is an administrator or a service. Raises 401."""
    return is_privileged(call.caller)


def list_bindings(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET /v2.0/ports/{key}/bindings: list bindings. Raises 404."""
    store.seen(PORT, call.named["key"], call.caller)
    return {"bindings": list(store.bindings.get(call.named["key"], {}).values())}


def create_binding(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """POST: create an inactive binding to another host. Raises 400, 404 or 409."""
    port, given = store.seen(PORT, call.named["key"], call.caller), call.member("binding")
    host, mine = given.get("host"), store.bindings.setdefault(port["id"], {})
    profile = given.get("profile", {})
    if not isinstance(host, str) or not host or not isinstance(profile, dict):
        raise NetworkError(400, "HTTPBadRequest", "Invalid input for host: a host name is required.")
    if host in mine:
        raise NetworkError(409, "PortBindingAlreadyExists", f"Binding for port {port['id']} on host {host} already "
                           "exists.")
    mine[host] = _binding(host, str(given.get("vnic_type", "normal")), profile, "INACTIVE")
    return {"binding": mine[host]}


def show_binding(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """GET the binding to one host. Raises 404."""
    return {"binding": _found(store, call)[1]}


def activate_binding(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """PUT .../activate: activate the binding to that host. Raises 404 or 409."""
    port, wanted = _found(store, call)
    if wanted["status"] == "ACTIVE":
        raise NetworkError(409, "PortBindingAlreadyActive", f"Binding for port {port['id']} on host "
                           f"{wanted['host']} is already active.")
    mine = store.bindings[port["id"]]
    for host, one in list(mine.items()):
        mine[host] = {**one, "status": "ACTIVE" if host == wanted["host"] else "INACTIVE"}
    touch(port, {"binding:host_id": wanted["host"], "binding:profile": wanted["profile"],
                 "status": "ACTIVE" if port["admin_state_up"] else "DOWN"})
    return {"binding": mine[wanted["host"]]}


def delete_binding(store: FakeNetworkStore, call: FakeCall) -> FakeAnswer:
    """DELETE the binding to one host; without its active binding, a port is unbound. Raises 404."""
    port, binding = _found(store, call)
    del store.bindings[port["id"]][binding["host"]]
    if port["binding:host_id"] == binding["host"]:
        touch(port, {"binding:host_id": "", "status": "DOWN"})
    return FakeAnswer(204)


def _found(store: FakeNetworkStore, call: FakeCall) -> tuple[PortRecord, BindingRecord]:
    port, host = store.seen(PORT, call.named["key"], call.caller), call.named["host"]
    binding = store.bindings.get(port["id"], {}).get(host)
    if binding is None:
        raise NetworkError(404, "PortBindingNotFound", f"Binding for port {port['id']} for host {host} could not be "
                           "found.")
    return port, binding


PORTS = NetworkResource(PORT, make, change, remove)
_BINDINGS = f"{PORT.path}/{{key}}/bindings"
ROUTES: tuple[FakeRoute[FakeNetworkStore], ...] = (
    *PORTS.routes, *tag_routes(PORT),
    FakeRoute("GET", _BINDINGS, list_bindings, privileged),
    FakeRoute("POST", _BINDINGS, create_binding, privileged, 201),
    FakeRoute("GET", f"{_BINDINGS}/{{host}}", show_binding, privileged),
    FakeRoute("PUT", f"{_BINDINGS}/{{host}}/activate", activate_binding, privileged),
    FakeRoute("DELETE", f"{_BINDINGS}/{{host}}", delete_binding, privileged),
)

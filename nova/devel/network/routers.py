"""Routers of FakeNeutron, their interfaces and gateways, and the floating addresses routed by them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from nova.devel.network import ports
from nova.devel.network.crud import NetworkResource, tag_routes
from nova.devel.network.kinds import FLOATING, NETWORK, PORT, ROUTER, SUBNET, NetworkError, is_privileged
from nova.devel.network.ports import FLOATING_PORT, GATEWAY_PORT, INTERFACE
from nova.devel.network.records import FixedIp, FloatingRecord, PortRecord, RouterGateway, RouterRecord, SubnetRecord
from nova.devel.network.store import FakeNetworkStore, forbidden, touch
from nova.devel.network.subnets import ZONE
from nova.devel.service import FakeCall, FakeRoute, TokenOwner

NOWHERE: FloatingRecord = {"port_id": None, "fixed_ip_address": None, "router_id": None, "status": "DOWN",
                           "port_details": None}


def _bad(what: str, words: str) -> NetworkError:
    return NetworkError(400, "BadRequest", f"Bad {what} request: {words}")


# --- routers


def make_router(store: FakeNetworkStore, caller: TokenOwner, project_id: str, given: RouterRecord) -> RouterRecord:
    """Create a router. Raises 400, 403, or 404 for an unknown external network."""
    router = store.insert(ROUTER, project_id, {**given, "external_gateway_info": None, "status": "ACTIVE",
                                               "availability_zones": [ZONE], "flavor_id": None})
    _set_gateway(store, caller, router, given.get("external_gateway_info"))
    return router


def change_router(store: FakeNetworkStore, caller: TokenOwner, router: RouterRecord, given: RouterRecord) -> None:
    """Change a router. Raises 400, 403, 404, or 409 if floating addresses need the gateway."""
    if "external_gateway_info" in given:
        _set_gateway(store, caller, router, given["external_gateway_info"])
    touch(router, {name: value or [] if name == "routes" else value for name, value in given.items()
                   if name != "external_gateway_info"})


def remove_router(store: FakeNetworkStore, caller: TokenOwner, router: RouterRecord) -> None:
    """Delete a router. Raises 409 if it has interfaces."""
    if store.where(PORT, device_id=router["id"], device_owner=INTERFACE):
        raise NetworkError(409, "RouterInUse", f"Router {router['id']} still has ports")
    _drop_gateway(store, router)
    store.remove(ROUTER, router)


def _set_gateway(store: FakeNetworkStore, caller: TokenOwner, router: RouterRecord, wanted: RouterGateway | None
                 ) -> None:
    """Set the router's port on an external network; None removes it."""
    old = router["external_gateway_info"]
    if not wanted or old and old["network_id"] != wanted["network_id"]:
        if store.where(FLOATING, router_id=router["id"]):
            raise NetworkError(409, "RouterExternalGatewayInUseByFloatingIp", f"Gateway cannot be updated for router "
                               f"{router['id']}, since a gateway to external network is required by one or more "
                               "floating IPs.")
        _drop_gateway(store, router)
    if not wanted:
        return
    if not is_privileged(caller) and {"enable_snat", "external_fixed_ips"} & wanted.keys():
        raise forbidden("create_router:external_gateway_info")
    network = store.seen(NETWORK, wanted["network_id"], caller)
    if not network["router:external"]:
        raise _bad("router", f"Network {network['id']} is not an external network.")
    fresh: PortRecord = {"device_id": router["id"], "device_owner": GATEWAY_PORT}
    if "external_fixed_ips" in wanted:
        fresh["fixed_ips"] = wanted["external_fixed_ips"]
    [port] = store.where(PORT, device_id=router["id"], device_owner=GATEWAY_PORT) or [
        ports.place(store, network, "", fresh)]
    router["external_gateway_info"] = {"network_id": network["id"], "external_fixed_ips": port["fixed_ips"],
                                       "enable_snat": wanted.get("enable_snat", True)}


def _drop_gateway(store: FakeNetworkStore, router: RouterRecord) -> None:
    for port in store.where(PORT, device_id=router["id"], device_owner=GATEWAY_PORT):
        ports.forget(store, port)
    router["external_gateway_info"] = None


# --- their interfaces


def add_interface(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """PUT /v2.0/routers/{key}/add_router_interface, with a subnet or a port. Raises 400, 403, 404 or 409."""
    router, (name, key) = store.own(ROUTER, call.named["key"], call.caller), _named(call)
    with store.whole():
        port = _plug_port(store, call, router, key) if name == "port_id" else _plug_subnet(store, call, router, key)
        return _interface(router, port)


def _plug_subnet(store: FakeNetworkStore, call: FakeCall, router: RouterRecord, key: str) -> PortRecord:
    subnet = store.seen(SUBNET, key, call.caller)
    if not subnet["gateway_ip"]:
        raise _bad("router", "Subnet for router interface must have a gateway IP.")
    _check_overlaps(store, router, subnet)
    address: list[FixedIp] = [{"subnet_id": subnet["id"], "ip_address": subnet["gateway_ip"]}]
    return ports.place(store, store.of(NETWORK)[subnet["network_id"]], router["project_id"], {
        "device_id": router["id"], "device_owner": INTERFACE, "fixed_ips": address})


def _plug_port(store: FakeNetworkStore, call: FakeCall, router: RouterRecord, key: str) -> PortRecord:
    port = store.own(PORT, key, call.caller)
    if port["device_id"]:
        raise NetworkError(409, "PortInUse", f"Unable to complete operation on port {key} for network "
                           f"{port['network_id']}. Port already has an attached device {port['device_id']}.")
    if not port["fixed_ips"]:
        raise _bad("router", "Router port must have at least one fixed IP.")
    for one in port["fixed_ips"]:
        _check_overlaps(store, router, store.of(SUBNET)[one["subnet_id"]])
    touch(port, {"device_id": router["id"], "device_owner": INTERFACE})
    return port


def _check_overlaps(store: FakeNetworkStore, router: RouterRecord, subnet: SubnetRecord) -> None:
    """Raise 400 if the router has a port on the subnet, or on an overlapping one."""
    for port in store.where(PORT, device_id=router["id"], device_owner=INTERFACE):
        for other in [store.of(SUBNET)[one["subnet_id"]] for one in port["fixed_ips"]]:
            if other["id"] == subnet["id"]:
                raise _bad("router", f"Router already has a port on subnet {subnet['id']}.")
            if ipaddress.ip_network(other["cidr"]).overlaps(ipaddress.ip_network(subnet["cidr"])):
                raise _bad("router", f"Cidr {subnet['cidr']} of subnet {subnet['id']} overlaps with "
                                     f"cidr {other['cidr']} of subnet {other['id']}.")


def remove_interface(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
    """PUT .../remove_router_interface, with a subnet or a port. Raises 400, 403, 404, or 409 if floating addresses need
    it."""
    router, (name, key) = store.own(ROUTER, call.named["key"], call.caller), _named(call)
    for port in store.where(PORT, device_id=router["id"], device_owner=INTERFACE):
        subnets = [one["subnet_id"] for one in port["fixed_ips"]]
        if key in ([port["id"]] if name == "port_id" else subnets):
            break
    else:
        raise NetworkError(404, f"RouterInterfaceNotFound{'ForSubnet' if name == 'subnet_id' else ''}",
                           f"Router {router['id']} has no interface {name} {key}")
    for floating in store.where(FLOATING, router_id=router["id"]):
        inside = [one["subnet_id"] for one in store.of(PORT)[floating["port_id"] or ""]["fixed_ips"]]
        if set(inside) & set(subnets):
            raise NetworkError(409, "RouterInterfaceInUseByFloatingIP", f"Router interface for subnet {subnets[0]} on "
                               f"router {router['id']} cannot be deleted, as it is required by one or more "
                               "floating IPs.")
    ports.forget(store, port)
    return _interface(router, port)


def _named(call: FakeCall) -> tuple[str, str]:
    """Return (subnet_id or port_id, its value). Raises 400."""
    body = call.body()
    name = next((name for name in ("port_id", "subnet_id") if isinstance(body, dict) and name in body), "")
    key = body.get(name) if isinstance(body, dict) else None
    if not isinstance(key, str):
        raise _bad("router", "Either subnet_id or port_id must be specified.")
    return name, key


def _interface(router: RouterRecord, port: PortRecord) -> dict[str, object]:
    subnets = [one["subnet_id"] for one in port["fixed_ips"]]
    return {"id": router["id"], "tenant_id": router["tenant_id"], "project_id": router["project_id"],
            "network_id": port["network_id"], "port_id": port["id"], "subnet_id": subnets[0], "subnet_ids": subnets}


# --- floating addresses


def make_floating(store: FakeNetworkStore, caller: TokenOwner, project_id: str, given: FloatingRecord
                  ) -> FloatingRecord:
    """Create a floating address. Raises 400, 404, or 409 if no address is free."""
    network = store.seen(NETWORK, given["floating_network_id"], caller)
    if not network["router:external"]:
        raise _bad("floatingip", f"Network {network['id']} is not a valid external network.")
    floating = store.insert(FLOATING, project_id, {**given, **NOWHERE})
    said: FixedIp = {}
    if subnet_id := given.get("subnet_id"):
        said["subnet_id"] = subnet_id
    if address := given.get("floating_ip_address"):
        said["ip_address"] = address
    subnet = next((one["id"] for one in store.where(SUBNET, network_id=network["id"]) if one["ip_version"] == 4), "")
    port = ports.place(store, network, "", {"device_id": floating["id"], "device_owner": FLOATING_PORT,
                                                    "fixed_ips": [said or {"subnet_id": subnet}]})
    floating["floating_ip_address"] = port["fixed_ips"][0]["ip_address"]
    del floating["subnet_id"]
    _lead(store, caller, floating, given)
    return floating


def change_floating(store: FakeNetworkStore, caller: TokenOwner, floating: FloatingRecord, given: FloatingRecord
                    ) -> None:
    """Change a floating address. Raises 400, 404, or 409 if the port has one."""
    if "port_id" in given or "fixed_ip_address" in given:
        _lead(store, caller, floating, {"port_id": floating["port_id"], **given})
    touch(floating, {"description": given.get("description", floating["description"])})


def remove_floating(store: FakeNetworkStore, caller: TokenOwner, floating: FloatingRecord) -> None:
    """Delete a floating address, which frees its address."""
    _tell(store, floating["port_id"])
    for port in store.where(PORT, device_id=floating["id"], device_owner=FLOATING_PORT):
        ports.forget(store, port)
    store.remove(FLOATING, floating)


def _lead(store: FakeNetworkStore, caller: TokenOwner, floating: FloatingRecord, given: FloatingRecord) -> None:
    """Associate the floating address with a port's address, or (port_id null) with none. Nova is notified about both
    servers."""
    before = floating["port_id"]
    floating.update(NOWHERE)
    if port_id := given.get("port_id"):
        port = store.own(PORT, port_id, caller)
        address = _address(port, given.get("fixed_ip_address"))
        if any(one["fixed_ip_address"] == address and one["floating_network_id"] == floating["floating_network_id"]
               for one in store.where(FLOATING, port_id=port["id"])):
            raise NetworkError(409, "FloatingIPPortAlreadyAssociated", f"Cannot associate floating IP "
                               f"{floating['floating_ip_address']} with port {port['id']} using fixed IP {address}, as "
                               "that fixed IP already has a floating IP on this external network.")
        floating.update({
            "port_id": port["id"], "fixed_ip_address": address, "status": "ACTIVE",
            "router_id": _router_between(store, port, address, floating["floating_network_id"]),
            "port_details": {"name": port["name"], "network_id": port["network_id"], "mac_address": port["mac_address"],
                             "device_id": port["device_id"], "device_owner": port["device_owner"],
                             "admin_state_up": port["admin_state_up"], "status": port["status"]}})
    for one in dict.fromkeys((before, floating["port_id"])):
        _tell(store, one)


def _tell(store: FakeNetworkStore, port_id: str | None) -> None:
    if port_id:
        store.tell(ports.CHANGED, store.of(PORT)[port_id])


def _address(port: PortRecord, wanted: str | None) -> str:
    """Return one of the port's IPv4 addresses. Raises 400."""
    found = [one["ip_address"] for one in port["fixed_ips"] if ipaddress.ip_address(one["ip_address"]).version == 4]
    if wanted is not None and wanted not in found:
        raise _bad("floatingip", f"Port {port['id']} does not have fixed ip {wanted}.")
    if not found:
        raise _bad("floatingip", f"Cannot add floating IP to port {port['id']} that has no fixed IPv4 addresses.")
    if wanted is None and len(found) > 1:
        raise _bad("floatingip", f"Port {port['id']} has multiple fixed IPv4 addresses. "
                                 "Must provide a specific IPv4 address when assigning a floating IP.")
    return wanted or found[0]


def _router_between(store: FakeNetworkStore, port: PortRecord, address: str, external_id: str) -> str:
    """Return the router between the port's subnet and the floating address's network. Raises 404 if there is none."""
    subnet = next(one["subnet_id"] for one in port["fixed_ips"] if one["ip_address"] == address)
    for plugged in store.where(PORT, device_owner=INTERFACE, network_id=port["network_id"]):
        router = store.of(ROUTER)[plugged["device_id"]]
        gateway = router["external_gateway_info"]
        if gateway and gateway["network_id"] == external_id and subnet in [one["subnet_id"]
                                                                           for one in plugged["fixed_ips"]]:
            return str(router["id"])
    raise NetworkError(404, "ExternalGatewayForFloatingIPNotFound", f"External network {external_id} is not reachable "
                       f"from subnet {subnet}. Therefore, cannot associate Port {port['id']} with a Floating IP.")


ROUTERS = NetworkResource(ROUTER, make_router, change_router, remove_router)
FLOATINGS = NetworkResource(FLOATING, make_floating, change_floating, remove_floating)
ROUTES: tuple[FakeRoute[FakeNetworkStore], ...] = (
    *ROUTERS.routes, *tag_routes(ROUTER), *FLOATINGS.routes, *tag_routes(FLOATING),
    FakeRoute("PUT", f"{ROUTER.path}/{{key}}/add_router_interface", add_interface),
    FakeRoute("PUT", f"{ROUTER.path}/{{key}}/remove_router_interface", remove_interface),
)

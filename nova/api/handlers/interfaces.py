"""A server's interfaces: show, attach and detach them; and add or remove a fixed address (multinic)."""

from __future__ import annotations

import uuid

import msgspec

from nova import decoding, errors
from nova.api.handlers.server_create import EXTERNAL_NETWORK
from nova.api.handlers.server_targets import actor, check_lock, target
from nova.api.request import Request
from nova.api.view import answers
from nova.api.views.interfaces import INTERFACE
from nova.model.network.networks import Interface, RequestedNetwork
from nova.model.server.servers import ServerQuery
from nova.web.formats import canonical_address


class FixedIpEntry(msgspec.Struct, frozen=True):
    """An entry of ``fixed_ips``."""

    ip_address: str


class AskedInterface(msgspec.Struct, frozen=True):
    """The object of an attach's body: a network, or a port."""

    net_id: str | None = None
    port_id: str | None = None
    fixed_ips: tuple[FixedIpEntry, ...] = ()
    tag: str | None = None


@answers({"interfaceAttachments": [INTERFACE]})
def index(req: Request, server_id: str) -> dict[str, object]:
    """List a server's interfaces with the network service's current data. Raises server.NotFound (404)."""
    return {"interfaceAttachments": INTERFACE.all(_interfaces(req, server_id), req)}


@answers({"interfaceAttachment": INTERFACE})
def show(req: Request, server_id: str, port_id: str) -> dict[str, object]:
    """Show one interface of a server by its port's id. Raises server.NotFound, server.NoSuchPort (404)."""
    for interface in _interfaces(req, server_id):
        if interface.id == port_id:
            return {"interfaceAttachment": INTERFACE(interface, req)}
    raise errors.server.NoSuchPort(server=server_id, port=port_id)


@answers({"interfaceAttachment": INTERFACE})
def create(req: Request, server_id: str) -> dict[str, object]:
    """Attach an interface; responds when the guest has it. Raises server.BadFixedIp, network.Ambiguous (400);
    network.PortInUse, server.InterfaceAddressInUse (409)."""
    asked = decoding.convert(req.body.get("interfaceAttachment") or {}, AskedInterface)
    requested = _requested(asked, req.allows(EXTERNAL_NETWORK))
    actor(req, server_id, "attach_interface")
    return {"interfaceAttachment": INTERFACE(req.conductor.attach_interface(server_id, requested), req)}


def delete(req: Request, server_id: str, port_id: str) -> None:
    """Detach an interface; responds when the detach has started. Raises server.NotFound, server.NoSuchInterface (404);
    server.Locked, server.WrongState, server.NoHost, server.InterfacesBusy (409)."""
    actor(req, server_id, "detach_interface")
    req.conductor.detach_interface(server_id, port_id)


def add_fixed_ip(req: Request, server_id: str) -> None:
    """Add an address of a network to a server. Raises server.NotFound (404); server.Locked, network.NoAddress (409);
    server.BadNetwork, network.NoPortThere (400); quota.FixedIps (403)."""
    check_lock(req, target(req, server_id))
    req.conductor.add_fixed_address(server_id, str(req.body["addFixedIp"]["networkId"]))


def remove_fixed_ip(req: Request, server_id: str) -> None:
    """Remove an address from a server. Raises server.NotFound (404); server.Locked (409); network.NotItsAddress
    (400)."""
    check_lock(req, target(req, server_id))
    address: str = req.body["removeFixedIp"]["address"]
    req.conductor.remove_fixed_address(server_id, canonical_address(address) or address)


def _interfaces(req: Request, server_id: str) -> tuple[Interface, ...]:
    """Return the server's interfaces. Policy is checked before the network service is asked."""
    target(req, server_id)
    found: tuple[Interface, ...] = req.conductor.list_interfaces(ServerQuery(uuid=server_id, scope=req.scope()))
    return found


def _requested(asked: AskedInterface, external: bool) -> RequestedNetwork:
    if asked.net_id and asked.port_id:
        raise errors.server.InterfaceNetworkAndPort
    if asked.fixed_ips and not asked.net_id:
        raise errors.server.InterfaceAddressWithoutNetwork
    return RequestedNetwork(network_id=str(uuid.UUID(asked.net_id)) if asked.net_id else None,
                            port_id=str(uuid.UUID(asked.port_id)) if asked.port_id else None,
                            fixed_ip=canonical_address(asked.fixed_ips[0].ip_address) if asked.fixed_ips else None,
                            tag=asked.tag, may_be_external=external and bool(asked.net_id))

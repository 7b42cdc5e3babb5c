"""Servers as the API shows them: one table of fields; fields that policy may hide have a flag."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence

from nova.api.request import Request
from nova.api.view import LEFT_OUT, LINKS, Free, Out, View, micros_of, seconds, seconds_of
from nova.api.views.image_properties import KNOWN
from nova.model.network.networks import Interface
from nova.model.server import states
from nova.model.server.servers import ServerDetail, ServerSummary

# flags
EXTENDED = "extended"  # policy os-extended-server-attributes
EXTRA_SPECS = "extra_specs"  # policy servers:show:flavor-extra-specs
HOST_STATUS = "host_status"  # policy servers:show:host_status
HOST_STATUS_UNKNOWN = "host_status_unknown"  # policy servers:show:host_status:unknown-only
ALONE = "alone"  # one server, not a list
ADMIN = "admin"  # show details of faults

ServerGetter = Callable[[ServerDetail, Request], object]


@functools.lru_cache(maxsize=4096)
def host_id(project_id: str, host: str | None) -> str:
    """Return an id of the host that differs for each project: SHA-224 of both; empty without a host."""
    return hashlib.sha224(f"{project_id}{host}".encode()).hexdigest() if host else ""


def status(server: ServerDetail, req: Request) -> str:
    """Return the API's status of a server, such as ``ACTIVE``; ``DELETED`` for a deleted one, regardless of its
    states."""
    return "DELETED" if server.deleted else states.status(server.vm_state, server.task_state)


def _progress(server: ServerDetail, req: Request) -> object:
    return server.progress if status(server, req) in states.SHOWN_WITH_PROGRESS else LEFT_OUT


def _fault(with_details: bool) -> ServerGetter:
    def get(server: ServerDetail, req: Request) -> object:
        fault = server.fault
        if fault is None or status(server, req) not in states.SHOWN_WITH_FAULT:
            return LEFT_OUT
        created = seconds(fault.created_at or server.created_at)
        shown = {"code": fault.code, "message": fault.message, "created": created}
        if fault.details and with_details:
            shown["details"] = fault.details
        return shown
    return get


def _links(server: ServerDetail | ServerSummary, req: Request) -> list[dict[str, str]]:
    return req.links.of("servers", server.uuid)


def _image(with_properties: bool) -> ServerGetter:
    def get(server: ServerDetail, req: Request) -> object:
        if not server.image_id:
            return ""
        shown: dict[str, object] = {"id": server.image_id, "links": req.links.image(server.image_id)}
        if with_properties:
            shown["properties"] = {name: value for name, value in server.image_properties.items() if name in KNOWN}
        return shown
    return get


def _flavor_link(server: ServerDetail, req: Request) -> dict[str, object]:
    flavorid = server.flavor.flavorid
    return {"id": flavorid, "links": req.links.bookmark("flavors", flavorid)}


def _flavor(with_specs: bool) -> ServerGetter:
    def get(server: ServerDetail, req: Request) -> dict[str, object]:
        flavor = server.flavor
        shown = {"vcpus": flavor.vcpus, "ram": flavor.memory_mb, "disk": flavor.root_gb, "swap": flavor.swap_mb,
                 "ephemeral": flavor.ephemeral_gb, "original_name": flavor.name}
        if with_specs:
            shown["extra_specs"] = flavor.extra_specs
        return shown
    return get


def addresses(interfaces: Sequence[Interface], extended: bool) -> dict[str, list[dict[str, object]]]:
    """Return network label -> addresses, fixed before floating; ``extended`` adds the kind and the MAC."""
    shown: dict[str, list[dict[str, object]]] = {}
    for interface in interfaces:
        entries = shown.setdefault(interface.label, [])
        for kind, held in (("fixed", interface.addresses), ("floating", interface.floating_addresses)):
            for address in held:
                entry: dict[str, object] = {"version": address.version, "addr": address.address}
                if extended:
                    entry["OS-EXT-IPS:type"] = kind
                    entry["OS-EXT-IPS-MAC:mac_addr"] = interface.mac
                entries.append(entry)
    return shown


def _addresses(extended: bool) -> ServerGetter:
    return lambda server, req: addresses(server.interfaces, extended)


def _hostname(server: ServerDetail, req: Request) -> str:
    return server.hostname or ""


def _volumes(server: ServerDetail, req: Request) -> list[dict[str, object]]:
    return [{"id": volume.id, "delete_on_termination": volume.delete_on_termination} for volume in server.volumes]


def _security_groups(server: ServerDetail, req: Request) -> object:
    return [{"name": name} for name in server.security_groups] or LEFT_OUT


def _host_status_if_unknown(server: ServerDetail, req: Request) -> object:
    return server.host_status if server.host_status == "UNKNOWN" else LEFT_OUT


def _updated(server: ServerDetail, req: Request) -> str | None:
    return seconds(server.updated_at or server.created_at)


# Shapes of the getters' values, for the API's description.
IMAGE = ({"id": "string", "links": LINKS, "properties?": Free()}, "string")
FLAVOR = {"vcpus": "integer", "ram": "integer", "disk": "integer", "swap": "integer", "ephemeral": "integer",
          "original_name": "string", "extra_specs?": Free()}
FAULT = {"code": "integer", "message": "string", "created": "string", "details?": "string"}
ADDRESSES = Free([{"version": "integer", "addr": "string", "OS-EXT-IPS:type?": "string",
                   "OS-EXT-IPS-MAC:mac_addr?": ("string", "null")}])

BRIEF = View(
    Out("id", "uuid"),
    Out("name", "name"),
    Out("links", _links),
    of=ServerDetail,
)

#: Fields of every response with a server, including PUT's of old versions.
_COMMON = (
    *BRIEF.fields,
    Out("status", status),
    Out("tenant_id", "project_id"),
    Out("user_id", "user_id"),
    Out("metadata", "metadata"),
    Out("hostId", lambda server, req: host_id(server.project_id, server.host), type="string"),
    Out("image", _image(False), until="2.97", type=IMAGE),
    Out("image", _image(True), since="2.98", type=IMAGE),
    Out("flavor", _flavor_link, until="2.46", type={"id": "string", "links": LINKS}),
    Out("flavor", _flavor(True), since="2.47", flag=EXTRA_SPECS, type=FLAVOR),
    Out("flavor", _flavor(False), since="2.47", flag=f"no {EXTRA_SPECS}", type=FLAVOR),
    Out("created", seconds_of("created_at")),
    Out("updated", _updated),
    Out("accessIPv4", lambda server, req: server.access_ip_v4 or "", type="string"),
    Out("accessIPv6", lambda server, req: server.access_ip_v6 or "", type="string"),
    Out("OS-DCF:diskConfig", "disk_config"),
    Out("progress", _progress, optional=True, type="integer"),
    Out("fault", _fault(True), optional=True, flag=ADMIN, type=FAULT),
    Out("fault", _fault(False), optional=True, flag=f"no {ADMIN}", type=FAULT),
    Out("locked", "locked", since="2.9"),
    Out("description", "description", since="2.19"),
    Out("tags", "tags", since="2.26"),
    Out("trusted_image_certificates", "trusted_certs", since="2.63"),
    Out("server_groups", "server_groups", since="2.71", flag=ALONE),
    Out("locked_reason", "locked_reason", since="2.73"),
    Out("pinned_availability_zone", "pinned_availability_zone", since="2.96"),
    Out("scheduler_hints", "scheduler_hints", since="2.100"),
)

FULL = View(
    *_COMMON,
    Out("addresses", _addresses(True), type=ADDRESSES),
    Out("key_name", "key_name"),
    Out("config_drive", lambda server, req: "True" if server.config_drive else "", type="string"),
    Out("security_groups", _security_groups, optional=True, type=[{"name": "string"}]),
    Out("os-extended-volumes:volumes_attached",
        lambda server, req: [{"id": volume.id} for volume in server.volumes], until="2.2", type=[{"id": "string"}]),
    Out("os-extended-volumes:volumes_attached", _volumes, since="2.3",
        type=[{"id": "string", "delete_on_termination": "boolean"}]),
    Out("OS-EXT-AZ:availability_zone", lambda server, req: server.availability_zone or "", type="string"),
    Out("OS-EXT-STS:power_state", "power_state"),
    Out("OS-EXT-STS:task_state", "task_state"),
    Out("OS-EXT-STS:vm_state", "vm_state"),
    Out("OS-SRV-USG:launched_at", micros_of("launched_at")),
    Out("OS-SRV-USG:terminated_at", micros_of("terminated_at")),
    Out("OS-EXT-SRV-ATTR:host", "host", flag=EXTENDED),
    Out("OS-EXT-SRV-ATTR:hypervisor_hostname", "node", flag=EXTENDED),
    Out("OS-EXT-SRV-ATTR:instance_name", "instance_name", flag=EXTENDED),
    Out("OS-EXT-SRV-ATTR:hostname", _hostname, since="2.3", until="2.89", flag=EXTENDED),
    Out("OS-EXT-SRV-ATTR:hostname", _hostname, since="2.90"),
    Out("OS-EXT-SRV-ATTR:kernel_id", "kernel_id", since="2.3", flag=EXTENDED),
    Out("OS-EXT-SRV-ATTR:ramdisk_id", "ramdisk_id", since="2.3", flag=EXTENDED),
    Out("OS-EXT-SRV-ATTR:launch_index", "launch_index", since="2.3", flag=EXTENDED),
    Out("OS-EXT-SRV-ATTR:reservation_id", "reservation_id", since="2.3", flag=EXTENDED),
    Out("OS-EXT-SRV-ATTR:root_device_name", "root_device_name", since="2.3", flag=EXTENDED),
    Out("OS-EXT-SRV-ATTR:user_data", "user_data", since="2.3", flag=EXTENDED),
    Out("host_status", "host_status", since="2.16", flag=HOST_STATUS),
    Out("host_status", _host_status_if_unknown, since="2.16", optional=True, flag=HOST_STATUS_UNKNOWN, type="string"),
    of=ServerDetail,
)

_STATUS_UNKNOWN = Out("status", lambda server, req: "UNKNOWN", type="string")

# Fields of a server whose cell does not answer, from 2.69.
UNKNOWN_BRIEF = View(Out("id", "uuid"), _STATUS_UNKNOWN, Out("links", _links), of=ServerDetail)
UNKNOWN_LISTED = View(
    *UNKNOWN_BRIEF.fields,
    Out("tenant_id", "project_id"),
    Out("created", seconds_of("created_at")),
    of=ServerDetail,
)
UNKNOWN = View(
    *UNKNOWN_LISTED.fields,
    Out("user_id", "user_id"),
    Out("image", _image(False), type=IMAGE),
    Out("flavor", _flavor(True), flag=EXTRA_SPECS, type=FLAVOR),
    Out("flavor", _flavor(False), flag=f"no {EXTRA_SPECS}", type=FLAVOR),
    Out("OS-EXT-AZ:availability_zone", "availability_zone"),
    Out("OS-EXT-STS:power_state", "power_state"),
    Out("server_groups", "server_groups", since="2.71"),
    of=ServerDetail,
)
#: A list's view -> the view of such a server in it.
_IN_PART = {BRIEF: UNKNOWN_BRIEF, FULL: UNKNOWN_LISTED}

#: The response of PUT before 2.75.
UPDATED = View(*_COMMON, Out("addresses", _addresses(False), type=ADDRESSES), of=ServerDetail)


_PASSWORD = Out("adminPass", lambda server, req: LEFT_OUT, optional=True, type="string")  # set by the handler
_USER_DATA = Out("user_data", "user_data", since="2.57")

#: The response of a rebuild from 2.75, and before.
REBUILT = View(*(entry for entry in FULL.fields if entry.name != "OS-EXT-SRV-ATTR:user_data"), _USER_DATA, _PASSWORD,
               of=ServerDetail)
REBUILT_IN_PART = View(*UPDATED.fields, Out("key_name", "key_name", since="2.54"), _USER_DATA, _PASSWORD,
                       of=ServerDetail)

#: The response of a create of one server (for several it may be a reservation's id).
CREATED = {"id": "string", "links": LINKS, "OS-DCF:diskConfig": "string", "security_groups": [{"name": "string"}],
           "adminPass?": "string"}


def page(view: View, servers: Sequence[ServerDetail] | Sequence[ServerSummary], req: Request,
         flags: frozenset[str] = frozenset()) -> dict[str, object]:
    """Return a list with its next link; without a link if the list has servers of a cell that does not answer, because
    pages omit them."""
    if any(server.unknown for server in servers):
        part = _IN_PART[view]
        return {"servers": [part(one, req) if one.unknown else view(one, req, flags) for one in servers]}
    last = servers[-1].uuid if servers else None
    return {"servers": view.all(servers, req, flags), **req.next_links("servers_links", servers, last)}


def created(uuid: str, req: Request, disk_config: str, groups: Sequence[str], password: str | None) -> dict[str,
            object]:
    """Return the response of a create: few fields, because the server has only just been requested."""
    server = {"id": uuid, "links": req.links.of("servers", uuid), "OS-DCF:diskConfig": disk_config,
              "security_groups": [{"name": name} for name in groups]}
    if password is not None:
        server["adminPass"] = password
    return {"server": server}

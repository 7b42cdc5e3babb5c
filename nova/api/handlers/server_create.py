"""Translation of a create's body to one command, the same for all versions, with policy checks of its fields."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from nova import decoding, errors
from nova.api import versions
from nova.api.request import Request
from nova.model.block_device.requested_devices import DeviceTerms, RequestedDevices, devices_of
from nova.model.network.networks import RequestedNetwork
from nova.model.server.servers import NewServer
from nova.web.formats import canonical_address, is_uuid
from nova.web.schema import MAX_INT

_RULES = "os_compute_api:servers:create:"
FORCED_HOST = f"{_RULES}forced_host"
ATTACH_VOLUME = f"{_RULES}attach_volume"
ATTACH_NETWORK = f"{_RULES}attach_network"
TRUSTED_CERTS = f"{_RULES}trusted_certs"
ZERO_DISK = f"{_RULES}zero_disk_flavor"
DESTINATION = "compute:servers:create:requested_destination"
EXTERNAL_NETWORK = "network:attach_external_network"

DEFAULT_GROUP = "default"
#: Letters and digits of passwords, without similar-looking ones.
PASSWORD_LETTERS = ("23456789", "ABCDEFGHJKLMNPQRSTUVWXYZ", "abcdefghijkmnopqrstuvwxyz")


class AskedFile(msgspec.Struct, frozen=True):
    """A file for the guest, in ``personality``."""

    path: str | UnsetType = UNSET
    contents: str | UnsetType = UNSET


class AskedNetwork(msgspec.Struct, frozen=True):
    """An entry of ``networks``: a network, or a port of it."""

    uuid: str | None = None
    port: str | None = None
    fixed_ip: str | None = None
    tag: str | None = None


class AskedGroup(msgspec.Struct, frozen=True):
    """An entry of ``security_groups``."""

    name: str | UnsetType = UNSET


class AskedServer(msgspec.Struct, frozen=True, kw_only=True):
    """The object ``server`` of a create's body. ``networks``: ``auto``, ``none`` or a list. The values of devices
    are checked by :func:`devices_of`."""

    name: str
    flavor: str | int = msgspec.field(name="flavorRef")
    image: str = msgspec.field(name="imageRef", default="")
    min_count: int = 1
    max_count: int | None = None
    metadata: Mapping[str, str] = {}
    networks: str | tuple[AskedNetwork, ...] | None = None
    security_groups: tuple[AskedGroup, ...] = ()
    availability_zone: str = ""
    host: str | None = None
    hypervisor_hostname: str | None = None
    key_name: str | None = None
    user_data: str | None = None
    config_drive: bool = False
    disk_config: str | UnsetType = msgspec.field(name="OS-DCF:diskConfig", default=UNSET)
    access_ip_v4: str | None = msgspec.field(name="accessIPv4", default=None)
    access_ip_v6: str | None = msgspec.field(name="accessIPv6", default=None)
    password: str | None = msgspec.field(name="adminPass", default=None)
    description: str | None = None
    hostname: str | None = None
    tags: tuple[str, ...] = ()
    trusted_certs: tuple[str, ...] | None = msgspec.field(name="trusted_image_certificates", default=None)
    personality: tuple[AskedFile, ...] = ()
    old_devices: tuple[Mapping[str, Any], ...] = msgspec.field(name="block_device_mapping", default=())
    new_devices: tuple[Mapping[str, Any], ...] = msgspec.field(name="block_device_mapping_v2", default=())


def order_of(req: Request) -> tuple[NewServer, str | None]:
    """Return (the command, the password to show or None). Raises Invalid, Forbidden for errors in the body."""
    asked = decoding.convert(req.body["server"], AskedServer)
    least, most = _counts(asked)
    place = _place(req, asked)
    networks = _networks(req, asked.networks, most)
    _check_certificates(req, asked)
    devices = _devices(req, asked, most)
    password, shown = passwords(req, asked.password)
    order = NewServer(
        name=asked.name.strip() if req.legacy else asked.name,
        flavor_id=str(asked.flavor).rsplit("/", 1)[-1], image_id=_image(asked), min_count=least, max_count=most,
        metadata=asked.metadata, networks=networks, make_network=asked.networks == "auto",
        may_use_external=bool(networks) and req.allows(EXTERNAL_NETWORK), security_groups=_groups(asked),
        availability_zone=place.zone, host=place.host, node=place.node, forced=place.forced,
        key_name=asked.key_name, user_data=asked.user_data, config_drive=asked.config_drive,
        disk_config="MANUAL" if asked.disk_config is UNSET else asked.disk_config,
        disk_config_asked=asked.disk_config is not UNSET,
        access_ip_v4=canonical_address(asked.access_ip_v4),
        access_ip_v6=canonical_address(asked.access_ip_v6), admin_password=password,
        description=asked.name if versions.name_is_description(req.version) else asked.description,
        hostname=asked.hostname, tags=tuple(dict.fromkeys(asked.tags)),
        scheduler_hints=_hints(req.body), files=files_of(asked.personality),
        may_zero_disk=req.allows(ZERO_DISK), disks=devices.disks, volumes=devices.volumes,
        unmapped=devices.unmapped, key=str(uuid.uuid4()))
    return order, shown


def passwords(req: Request, asked: str | None) -> tuple[str, str | None]:
    """Return (the administrator's password, requested or generated; the password to show in the response, or None)."""
    password = asked or new_password(req.options.password_length)
    return password, password if req.options.enable_instance_password else None


def new_password(length: int) -> str:
    """Return a random password; with three or more characters it has a digit, an upper-case and a lower-case letter."""
    chosen = [secrets.choice(letters) for letters in PASSWORD_LETTERS[:length]]
    chosen += [secrets.choice("".join(PASSWORD_LETTERS)) for _ in range(length - len(chosen))]
    secrets.SystemRandom().shuffle(chosen)
    return "".join(chosen)


def _counts(asked: AskedServer) -> tuple[int, int]:
    least = asked.min_count
    most = least if asked.max_count is None else asked.max_count
    if most > MAX_INT:
        raise errors.server.BadCreate(f"max_count is too large: at most {MAX_INT}")
    if least > most:
        raise errors.server.BadCreate(f"min_count must be <= max_count: {least} is greater than {most}")
    return least, most


def _image(asked: AskedServer) -> str:
    if not asked.image and not asked.new_devices and not asked.old_devices:
        raise errors.server.BadCreate("Invalid imageRef provided: a server without an image needs a boot volume in "
                                      "block_device_mapping_v2.")
    return asked.image


def _groups(asked: AskedServer) -> tuple[str, ...]:
    named = [group.name for group in asked.security_groups if group.name is not UNSET]
    return tuple(dict.fromkeys(named)) or (DEFAULT_GROUP,)


def _hints(body: Mapping[str, Mapping[str, object]]) -> Mapping[str, object]:
    """Return the scheduler hints: the first of the two objects, even if it is empty."""
    return body.get("os:scheduler_hints", body.get("OS-SCH-HNT:scheduler_hints", {}))


def _check_certificates(req: Request, asked: AskedServer) -> None:
    """Raise server.NoSignatures for requested signature checks, which are not supported, instead of ignoring them."""
    if asked.trusted_certs is None:
        return
    req.authorize(rule=TRUSTED_CERTS)
    raise errors.server.NoSignatures()


def files_of(asked: Iterable[AskedFile]) -> dict[str, str]:
    """Return path -> contents in base64, from ``personality``."""
    files: dict[str, str] = {}
    for item in asked:
        if item.path is UNSET or item.contents is UNSET:
            missing = "path" if item.path is UNSET else "contents"
            raise errors.server.BadCreate(f"Bad personality format: missing {missing}")
        files[item.path] = item.contents
    return files


def _devices(req: Request, asked: AskedServer, most: int) -> RequestedDevices:
    if asked.old_devices and asked.new_devices:
        raise errors.server.BadCreate("Using different block_device_mapping syntaxes is not allowed in the same "
                                      "request.")
    if not asked.old_devices and not asked.new_devices:
        return RequestedDevices()
    req.authorize(rule=ATTACH_VOLUME)
    return devices_of(asked.old_devices, asked.new_devices, DeviceTerms(
        image=_image(asked), servers=most, multiattach=versions.volumes_may_be_shared(req.version),
        most_local=req.options.max_local_block_devices))


# networks


def _networks(req: Request, wanted: str | tuple[AskedNetwork, ...] | None, most: int
              ) -> tuple[RequestedNetwork, ...] | None:
    """Return the requested networks. None: the networks that the project may use; empty: no networks."""
    if wanted == "none":
        return ()
    if wanted is not None:
        req.authorize(rule=ATTACH_NETWORK)
    if not wanted or isinstance(wanted, str):
        return None
    return tuple(_network(item, most) for item in wanted)


def _network(item: AskedNetwork, most: int) -> RequestedNetwork:
    port, network, address = item.port, item.uuid, item.fixed_ip
    if port is not None and address is not None:
        raise errors.server.BadCreate(f"Specified Fixed IP '{address}' cannot be used with port '{port}': the two "
                                      "cannot be specified together.")
    if port is None and network is None:
        raise errors.server.BadCreate("Bad networks format: each needs a network's uuid or a port.")
    if port is None and not is_uuid(str(network)):
        raise errors.server.BadCreate(f"Bad networks format: network uuid is not in proper format ({network})")
    if most > 1 and (port is not None or address is not None):
        raise errors.server.BadCreate("Unable to launch multiple instances with a single configured port ID or fixed "
                                      "IP. Please launch your instances one by one.")
    return RequestedNetwork(network_id=network if port is None else None, port_id=port,
                            fixed_ip=canonical_address(address),
                            tag=item.tag)


# placement


@dataclass(frozen=True)
class RequestedPlace:
    """Requested zone, host and node. ``forced``: skip the scheduler's filters, for a place in ``zone:host:node``."""

    zone: str | None = None
    host: str | None = None
    node: str | None = None
    forced: bool = False


def _place(req: Request, asked: AskedServer) -> RequestedPlace:
    """Return zone, host and node, from both request forms. Raises Forbidden if the caller may not select a host."""
    place = _parse_zone(asked.availability_zone.strip())
    host, node = asked.host, asked.hypervisor_hostname
    if place.forced:
        if host or node:
            raise errors.server.BadCreate("A host can be requested either in availability_zone (zone:host:node), or "
                                          "by host and hypervisor_hostname, not by both.")
        req.authorize(rule=FORCED_HOST)
        return place
    if host or node:
        req.authorize(rule=DESTINATION)
    return RequestedPlace(place.zone, host, node)


def _parse_zone(text: str) -> RequestedPlace:
    """Parse ``zone``, ``zone:host`` or ``zone:host:node``; host or node may be empty (``zone::node``)."""
    parts: Sequence[str] = text.split(":")
    if len(parts) > 3:
        raise errors.server.BadCreate("Invalid availability_zone: use zone, zone:host or zone:host:node.")
    zone, host, node = (*parts, "", "")[:3]
    return RequestedPlace(zone or None, host or None, node or None, forced=bool(host or node))

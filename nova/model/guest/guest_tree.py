"""Metadata files of a guest, for the metadata service and the config drive.

Pure: facts go in, ``{path: content}`` comes out, for every version of both dialects (OpenStack's and EC2's). A path has
no leading slash. A key that ends in a slash is the listing of that directory, for listings that are not made of the
file names.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from nova.model.base import Value
from nova.model.ec2 import ec2_id
from nova.model.guest.guest_devices import devices
from nova.model.guest.guest_network import TEMPLATE, network_config, network_data
from nova.model.guest.guests import GuestFacts
from nova.model.network.networks import FixedAddress

LATEST = "latest"
OPENSTACK_VERSIONS = ("2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15", "2016-06-30", "2016-10-06", "2017-02-22",
                      "2018-08-27", "2020-10-14", "2025-04-04")
EC2_VERSIONS = ("1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15", "2008-02-01",
                "2008-09-01", "2009-04-04")

#: Files of a version directory below ``openstack``, and the first version that lists each.
OPENSTACK_FILES = {"meta_data.json": "2012-08-10", "user_data": "2012-08-10", "password": "2013-04-04",
                   "vendor_data.json": "2013-10-17", "network_data.json": "2015-10-15",
                   "vendor_data2.json": "2016-10-06"}
UNLISTED_BEFORE = ("network_data.json",)  # the service also serves these in older versions, but does not list them
NOT_ON_DRIVE = ("password",)

RANDOM_SEED, PROJECT_ID, DEVICES, DEDICATED_CPUS = "2013-04-04", "2015-10-15", "2016-06-30", "2020-10-14"
SEED_BYTES = 512
SKIPPED_ON_DRIVE = "1.0 2007-01-19 2007-03-01 2007-08-29 2007-10-10 2007-12-15 2008-02-01 2008-09-01"

Json = Mapping[str, Any]
RandomBytes = Callable[[int], bytes]


class TreeOptions(Value):
    """Options that affect the files. ``network_template``: template of the interfaces file for networks without DHCP;
    empty: the file is left out."""

    dhcp_domain: str = "novalocal"
    network_template: str = TEMPLATE
    skip_versions: tuple[str, ...] = tuple(SKIPPED_ON_DRIVE.split())


class VendorData(Value):
    """Vendor data of the operator. ``static`` None: no static provider. ``dynamic``: by target name."""

    static: Json | None = {}
    dynamic: Json = {}


def tree(facts: GuestFacts, options: TreeOptions | None = None, vendor: VendorData | None = None,
         random_bytes: RandomBytes = secrets.token_bytes) -> dict[str, bytes]:
    """Return every file of the metadata service for one guest, at every version."""
    options, vendor = options or TreeOptions(), vendor or VendorData()
    files: dict[str, bytes] = {}
    for version in (*OPENSTACK_VERSIONS, LATEST):
        for name, content in _openstack(facts, version, options, vendor, random_bytes):
            files[f"openstack/{version}/{name}"] = content
    files.update(_contents(facts, options))
    user_data = user_data_of(facts)
    for version in (*EC2_VERSIONS, LATEST):
        files.update(_flat(f"{version}/meta-data", ec2_meta_data(facts, version, options)))
        if facts.public_key:
            files[f"{version}/meta-data/public-keys/"] = f"0={facts.key_name}".encode()
        if user_data is not None:
            files[f"{version}/user-data"] = user_data
    return _shared(files)


def config_drive_files(facts: GuestFacts, options: TreeOptions | None = None, vendor: VendorData | None = None,
                       random_bytes: RandomBytes = secrets.token_bytes) -> dict[str, bytes]:
    """Return every file of a config drive. Unlike the service, it contains the administrator's password, as plain
    text."""
    options, vendor = options or TreeOptions(), vendor or VendorData()
    files: dict[str, bytes] = {}
    for version in (*OPENSTACK_VERSIONS, LATEST):
        for name, content in _openstack(facts, version, options, vendor, random_bytes, on_drive=True):
            files[f"openstack/{version}/{name}"] = content
    files.update(_contents(facts, options))
    user_data = user_data_of(facts)
    for version in (*EC2_VERSIONS, LATEST):
        if version in options.skip_versions:
            continue
        files[f"ec2/{version}/meta-data.json"] = _json(ec2_meta_data(facts, version, options))
        if user_data is not None:
            files[f"ec2/{version}/user-data"] = user_data
    return files


def listing(files: Mapping[str, bytes], path: str, today: datetime.date) -> bytes | None:
    """Return a directory's names, one per line; directories end in a slash. None if the directory does not exist.

    Version lists omit future versions.
    """
    if path in ("", "openstack"):
        versions = EC2_VERSIONS if path == "" else OPENSTACK_VERSIONS
        return "\n".join([*(version for version in versions if _is_past(version, today)), LATEST]).encode()
    if path == "openstack/content":
        return None
    start = f"{path}/"
    if start in files:
        return files[start]
    names: dict[str, None] = {}
    for name in files:
        if name.startswith(start) and _is_listed(name):
            head, slash, _rest = name[len(start):].partition("/")
            names[head + slash] = None
    if not names:
        return None
    in_table_order = path.startswith("openstack/")
    return "\n".join(names if in_table_order else sorted(names)).encode()


def host_name(facts: GuestFacts, options: TreeOptions) -> str:
    """Return the guest's host name, followed by ``[api]dhcp_domain`` if that is set."""
    return f"{facts.hostname}.{options.dhcp_domain}" if options.dhcp_domain else facts.hostname


def user_data_of(facts: GuestFacts) -> bytes | None:
    """Return the user data as raw bytes; None if the server has none."""
    return _decoded(facts.user_data) if facts.user_data else None


def _shared(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Store equal contents once: a guest's user data is in twenty versions, and thousands of guests are cached."""
    seen: dict[bytes, bytes] = {}
    return {path: seen.setdefault(content, content) for path, content in files.items()}


def _is_past(version: str, today: datetime.date) -> bool:
    return "-" not in version or datetime.date.fromisoformat(version) <= today


def _is_listed(path: str) -> bool:
    parts = path.split("/")
    if parts[0] != "openstack" or parts[-1] not in UNLISTED_BEFORE:
        return True
    return _at_least(parts[1], OPENSTACK_FILES[parts[-1]])


def _at_least(version: str, since: str) -> bool:
    """Compare two versions of one dialect as text; ``latest`` is the highest."""
    return version == LATEST or version >= since


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


# --- openstack --------------------------------------------------------------------------------------------------------

def _openstack(facts: GuestFacts, version: str, options: TreeOptions, vendor: VendorData, random_bytes: RandomBytes,
               on_drive: bool = False) -> Iterator[tuple[str, bytes]]:
    """Yield the files of one version directory, in the order of the table."""
    makers: dict[str, Callable[[], bytes | None]] = {
        "meta_data.json": lambda: _json(meta_data(facts, version, options, random_bytes, on_drive)),
        "user_data": lambda: user_data_of(facts),
        "password": lambda: facts.password.encode(),
        "vendor_data.json": lambda: _json(vendor.static or {}),
        "network_data.json": lambda: _json(network_data(facts.interfaces)),
        "vendor_data2.json": lambda: vendor_data2_file(vendor),
    }
    for name, since in OPENSTACK_FILES.items():
        hidden = name in UNLISTED_BEFORE and not on_drive
        if (on_drive and name in NOT_ON_DRIVE) or not (hidden or _at_least(version, since)):
            continue
        content = makers[name]()
        if content is not None:
            yield name, content


def meta_data(facts: GuestFacts, version: str, options: TreeOptions, random_bytes: RandomBytes,
              on_drive: bool = False) -> dict[str, object]:
    """Return ``meta_data.json`` at ``version``, which determines the fields. Only the config drive (``on_drive``)
    contains the password."""
    found: dict[str, Any] = {"uuid": facts.uuid}
    if facts.metadata:
        found["meta"] = dict(facts.metadata)
    if facts.files:
        found["files"] = [{"path": path, "content_path": _content_path(number)}
                          for number, path in enumerate(facts.files)]
    if network_config(facts.interfaces, options.network_template) is not None:
        found["network_config"] = {"name": "network_config", "content_path": _content_path(len(facts.files))}
    if facts.public_key:
        found["public_keys"] = {facts.key_name: facts.public_key}
        found["keys"] = [{"name": facts.key_name, "type": facts.key_type, "data": facts.public_key}]
    found |= {"hostname": host_name(facts, options), "name": facts.name, "launch_index": facts.launch_index,
              "availability_zone": facts.availability_zone}
    if on_drive and facts.admin_password:
        found["admin_pass"] = facts.admin_password
    if _at_least(version, RANDOM_SEED):
        found["random_seed"] = base64.b64encode(random_bytes(SEED_BYTES)).decode()
    if _at_least(version, PROJECT_ID):
        found["project_id"] = facts.project_id
    if _at_least(version, DEVICES):
        found["devices"] = devices(facts.interfaces, facts.places, version)
    if _at_least(version, DEDICATED_CPUS):
        found["dedicated_cpus"] = list(facts.dedicated_cpus)
    return found


def vendor_data2_file(vendor: VendorData) -> bytes:
    """Return ``vendor_data2.json``: the answer of each dynamic service under its name, and ``static``."""
    static = {} if vendor.static is None else {"static": vendor.static}
    return _json({**static, **vendor.dynamic})


def _contents(facts: GuestFacts, options: TreeOptions) -> dict[str, bytes]:
    """Return guest.FakeInjected files (base64 text in the facts) and the interfaces file, numbered as in
    meta_data.json."""
    contents = [_decoded(content) for content in facts.files.values()]
    config = network_config(facts.interfaces, options.network_template)
    if config is not None:
        contents.append(config.encode())
    return {f"openstack{_content_path(number)}": content for number, content in enumerate(contents)}


def _content_path(number: int) -> str:
    return f"/content/{number:04d}"


def _decoded(text: str) -> bytes:
    """Decode base64 text, with or without line breaks. Text that is not base64 was stored before it was checked; it is
    returned unchanged."""
    with contextlib.suppress(binascii.Error, ValueError):
        return base64.b64decode("".join(text.split()), validate=True)
    return text.encode()


# --- ec2 --------------------------------------------------------------------------------------------------------------

def _id(facts: GuestFacts, prefix: str, id: str) -> str:
    """Return an EC2 id as in the EC2 API. An older conductor does not know that API; then the id is the server's own
    key, or starts like the image's id."""
    known = facts.ec2_numbers.get(id, facts.id if id == facts.uuid else None)
    return f"{prefix}-{id[:8]}" if known is None else ec2_id(prefix, known)


def ec2_meta_data(facts: GuestFacts, version: str, options: TreeOptions) -> dict[str, object]:
    """Return the ``meta-data`` directory of one version; a nested dictionary is a subdirectory."""
    rows = ((since, name, value) for since, name, value in _ec2_rows(facts, options)
            if value is not None and (version == LATEST or EC2_VERSIONS.index(version) >= EC2_VERSIONS.index(since)))
    return {name: value for _since, name, value in rows}


def _ec2_rows(facts: GuestFacts, options: TreeOptions) -> tuple[tuple[str, str, object], ...]:
    """Return (first version, name, value) rows; a value of None means that the entry is absent."""
    name = host_name(facts, options)
    keys = {"0": {"openssh-key": facts.public_key}} if facts.public_key else None
    return (
        ("1.0", "ami-id", _id(facts, "ami", facts.image_id) if facts.image_id else ""),
        ("1.0", "ami-launch-index", facts.launch_index),
        ("1.0", "ami-manifest-path", "FIXME"),
        ("1.0", "instance-id", _id(facts, "i", facts.uuid)),
        ("1.0", "hostname", name),
        ("1.0", "local-ipv4", _first_v4(address for card in facts.interfaces for address in card.addresses)),
        ("1.0", "reservation-id", facts.reservation_id),
        ("1.0", "security-groups", "\n".join(facts.security_groups)),
        ("1.0", "public-keys", keys),
        ("2007-01-19", "local-hostname", name),
        ("2007-01-19", "public-hostname", name),
        ("2007-01-19", "public-ipv4", _first_v4(address for card in facts.interfaces
                                                for address in card.floating_addresses)),
        ("2007-08-29", "instance-type", facts.flavor_name),
        ("2007-12-15", "block-device-mapping", _block_devices(facts)),
        ("2007-12-15", "kernel-id", _id(facts, "aki", facts.kernel_id) if facts.kernel_id else None),
        ("2007-12-15", "ramdisk-id", _id(facts, "ari", facts.ramdisk_id) if facts.ramdisk_id else None),
        ("2008-02-01", "placement", {"availability-zone": facts.availability_zone or ""}),
        ("2008-09-01", "instance-action", "none"),
    )


def _first_v4(addresses: Iterable[FixedAddress]) -> str:
    return next((found.address for found in addresses if found.version == 4), "")


def _block_devices(facts: GuestFacts) -> dict[str, str]:
    """Return the device names. Disks follow the root disk in this order: ephemeral disks, then swap."""
    root = facts.root_device_name or "/dev/vda"
    stem, letter = root.rstrip("0123456789")[:-1], root.rstrip("0123456789")[-1]
    following = iter(f"{stem}{chr(ord(letter) + number)}" for number in range(1, 26))
    found = {"ami": root.removeprefix("/dev/"), "root": root}
    found |= {f"ephemeral{number}": next(following) for number in range(facts.ephemeral_count)}
    if facts.swap_mb:
        found["swap"] = next(following)
    return found


def _flat(path: str, value: object) -> dict[str, bytes]:
    if not isinstance(value, dict):
        return {path: str(value).encode()}
    files: dict[str, bytes] = {}
    for name, inner in value.items():
        files.update(_flat(f"{path}/{name}", inner))
    return files

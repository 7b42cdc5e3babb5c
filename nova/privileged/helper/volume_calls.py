"""Calls for remote volumes: mounted exports, devices of os-brick; and ports that os-vif plugs."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from nova.model.base import Json
from nova.privileged.brick import Brick, BrickDevice
from nova.privileged.helper import arguments as types
from nova.privileged.helper.calling import HelperCall, call
from nova.privileged.mounts import Mounts
from nova.privileged.os_vif_plugs import OsVif, VifPort

Export = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9\[][A-Za-z0-9.:\[\]_-]{0,255}:/[!-~]{0,1023}\Z")]
MountOptions = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_=.,:-]{0,1000}\Z")]
#: An export could contain files of a user that would make a process root.
HARMLESS = "nosuid,nodev,noexec"
POINT = re.compile(r"[0-9a-f]{32}")


def _mounts(call: HelperCall, path: str) -> Mounts:
    base, name = os.path.split(path)
    if base != str(call.settings.mount_base) or not POINT.fullmatch(name):
        raise call.refused(f"{path[:200]} is not a mount point in [libvirt]nfs_mount_point_base")
    for folder in (Path(base), *Path(base).parents):
        facts = os.lstat(folder) if folder.exists() else None
        if facts is not None and (facts.st_uid != 0 or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
                                  or not stat.S_ISDIR(facts.st_mode)):
            raise call.refused(f"[libvirt]nfs_mount_point_base must be in directories that only root writes to, but "
                               f"{folder} is not one: set it, for example, to /var/lib/nova-mnt")
    return Mounts(call.runner(150.0))


@call("mounts.prepare")
def prepare(call: HelperCall, path: types.HostPath) -> None:
    _mounts(call, path).prepare(path)


@call("mounts.forget")
def forget(call: HelperCall, path: types.HostPath) -> None:
    _mounts(call, path).forget(path)


@call("mounts.forget_mark")
def forget_mark(call: HelperCall, path: types.HostPath) -> None:
    _mounts(call, path).forget_mark(path)


@call("mounts.mount")
def mount(call: HelperCall, source: Export, path: types.HostPath,
          type_: Annotated[str, Meta(pattern=r"\Anfs\Z")], options: MountOptions = "") -> None:
    if os.path.basename(path) != hashlib.md5(source.encode(), usedforsecurity=False).hexdigest():
        raise call.refused("the mount point is not that of the export")
    _mounts(call, path).mount(source, path, type_, ",".join(filter(None, (options, HARMLESS))))


@call("mounts.unmount")
def unmount(call: HelperCall, path: types.HostPath) -> None:
    _mounts(call, path).unmount(path)


# --- os-brick

BrickCall = Annotated[str, Meta(pattern=r"\A(properties|connect|disconnect|extend)\Z")]
Protocol = Annotated[str, Meta(pattern=r"\A(ISCSI|ISER|FIBRE_CHANNEL|NVMEOF|LIGHTOS|SCALEIO|STORPOOL|GPFS)\Z")]
Word = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_.-]{1,64}\Z")]


class GivenDevice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.brick.BrickDevice``."""

    protocol: Protocol
    words: Mapping[Word, Json]
    tries: Annotated[int, Meta(ge=1, le=100)] = 3
    transport: Annotated[str, Meta(pattern=r"\A([A-Za-z0-9_][A-Za-z0-9_.:-]{0,63})?\Z")] = ""
    shared_targets: bool | None = False
    service_uuid: Annotated[str, Meta(pattern=r"\A[0-9A-Za-z-]{0,64}\Z")] = ""
    found: Mapping[Word, Json] = {}


@call("brick.ask")
def ask(call_: HelperCall, call: BrickCall, device: GivenDevice | None = None, force: bool = False) -> Json:
    own = call_.settings.brick
    if Path(own.lock_path).parent == call_.settings.own_folder:
        call_.own(Path(own.lock_path).name)
    given = BrickDevice(**msgspec.structs.asdict(device)) if device is not None else None
    return Brick(call_.runner(300.0), own).ask(call, given, force)


# --- os-vif

class GivenPort(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.os_vif_plugs.VifPort``."""

    id: types.Uuid
    plugin: Annotated[str, Meta(pattern=r"\A(ovs|linux_bridge)\Z")]
    device: types.Device
    bridge: types.Device
    datapath: Annotated[str, Meta(pattern=r"\A[a-z]{0,16}\Z")] = ""
    port_id: Annotated[str, Meta(pattern=r"\A[0-9A-Za-z-]{0,64}\Z")] = ""
    between: types.DeviceOrNone = ""
    mac: types.Mac | None = None
    network_id: types.Uuid = "00000000-0000-0000-0000-000000000000"
    label: Annotated[str, Meta(pattern=r"\A[^\x00-\x1f]{0,255}\Z")] = ""
    mtu: types.Mtu | None = None
    filtered: bool = True


@functools.cache
def _os_vif(locks: Path) -> OsVif:
    """Return the library's instance, which lives as long as the process."""
    return OsVif(locks)


@call("os_vif.plug")
def plug(call: HelperCall, port: GivenPort, server_uuid: types.Uuid) -> None:
    _os_vif(call.own("locks")).plug(VifPort(**msgspec.structs.asdict(port)), server_uuid)


@call("os_vif.unplug")
def unplug(call: HelperCall, port: GivenPort) -> None:
    _os_vif(call.own("locks")).unplug(VifPort(**msgspec.structs.asdict(port)))

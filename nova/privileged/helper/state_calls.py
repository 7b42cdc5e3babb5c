"""Calls for the helper's self-description, and for emulated TPMs, whose states libvirt keeps for another user."""

from __future__ import annotations

import contextlib
import pwd
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from nova.privileged import dmi, ownership, tpm_states
from nova.privileged.about import About
from nova.privileged.helper import arguments as types
from nova.privileged.helper.calling import HelperCall, call
from nova.privileged.helper.folders import HelperFolders
from nova.version import RELEASE

StateFile = Annotated[str, Meta(pattern=r"\A(?!/)((?!\.{1,2}(/|\Z))[^/\x00\n]{1,100}(/(?!\Z)|\Z)){1,3}\Z")]


@call("about")
def about(call: HelperCall) -> About:
    own = call.settings
    return About(release=RELEASE, instances_path=str(own.instances_path), state_path=str(own.state_path),
                 networks_path=str(own.networks_path), user=own.user)


@call("dmi.product_uuid")
def product_uuid(call: HelperCall) -> str:
    return dmi.product_uuid()


@call("ownership.adopt")
def adopt(call: HelperCall) -> int:
    own, user = call.settings, pwd.getpwnam(call.settings.user)
    folders, roots = HelperFolders([Path("/")]), []
    try:
        for path in (own.state_path, own.instances_path, own.networks_path):
            with contextlib.suppress(FileNotFoundError):
                roots.append(folders.folder(str(path)).fd)
        return ownership.adopt(roots, user.pw_uid, user.pw_gid)
    finally:
        folders.close()


@call("tpm_states.remove")
def remove(call: HelperCall, server_uuid: types.Uuid) -> None:
    tpm_states.remove(call.settings.tpm_path, server_uuid)


@call("tpm_states.read")
def read(call: HelperCall, server_uuid: types.Uuid) -> dict[str, bytes]:
    return dict(tpm_states.read(call.settings.tpm_path, server_uuid))


@call("tpm_states.lay_out")
def lay_out(call: HelperCall, server_uuid: types.Uuid,
            files: Annotated[dict[StateFile, Annotated[bytes, Meta(max_length=tpm_states.LONGEST)]],
                             Meta(max_length=64)]) -> None:
    if sum(map(len, files.values())) > tpm_states.LONGEST:
        raise call.refused("the state is too long")
    tpm_states.lay_out(call.settings.tpm_path, server_uuid, files)


__all__ = ["about", "adopt", "lay_out", "product_uuid", "read", "remove"]

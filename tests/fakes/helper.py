"""The helper's settings for tests, and calls of it by bytes, as any process that may ask can send them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from nova.privileged import wire
from nova.privileged.helper.settings import HelperSettings
from nova.privileged.helper.table import dispatch

GUEST = "6f2b1c0e-2f53-4c52-9d0e-0c5b8d1a4f11"


def settings(top: Path, **changes: Any) -> HelperSettings:
    """All folders lie below ``top``; the guest's is there."""
    values: dict[str, Any] = {
        "instances_path": top / "instances", "state_path": top, "networks_path": top / "networks",
        "mount_base": top / "mnt", "own_folder": top / "own", "tpm_path": top / "swtpm"} | changes
    (top / "instances" / GUEST).mkdir(parents=True, exist_ok=True)
    return HelperSettings(**values)


def asked(call: str, arguments: dict[str, Any], host: HelperSettings) -> wire.HelperReply:
    """The reply to a call with these arguments, whatever they are."""
    request = wire.HelperRequest(call, msgspec.Raw(msgspec.msgpack.encode(arguments)))
    return msgspec.msgpack.decode(dispatch(msgspec.msgpack.encode(request), host), type=wire.HelperReply)


def refusal(call: str, arguments: dict[str, Any], host: HelperSettings) -> str:
    """Why the helper refuses it. AssertionError: it does not."""
    reply = asked(call, arguments, host)
    assert reply.error is not None and reply.error[1] == "host.helper_refused", (reply, bytes(reply.result))
    return reply.error[2]

"""Settings of the privileged helper for tests, and calls as bytes, as any process with access can send them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from nova.privileged import wire
from nova.privileged.helper.settings import HelperSettings
from nova.privileged.helper.table import dispatch

GUEST = "6f2b1c0e-2f53-4c52-9d0e-0c5b8d1a4f11"


def settings(top: Path, **changes: Any) -> HelperSettings:
    """Return settings whose folders are all below ``top``; the guest's folder exists."""
    values: dict[str, Any] = {
        "instances_path": top / "instances", "state_path": top, "networks_path": top / "networks",
        "mount_base": top / "mnt", "own_folder": top / "own", "tpm_path": top / "swtpm"} | changes
    (top / "instances" / GUEST).mkdir(parents=True, exist_ok=True)
    return HelperSettings(**values)


def asked(call: str, arguments: dict[str, Any], host: HelperSettings) -> wire.HelperReply:
    """Return the reply to a call with any arguments."""
    request = wire.HelperRequest(call, msgspec.Raw(msgspec.msgpack.encode(arguments)))
    return msgspec.msgpack.decode(dispatch(msgspec.msgpack.encode(request), host), type=wire.HelperReply)


def refusal(call: str, arguments: dict[str, Any], host: HelperSettings) -> str:
    """Return the helper's reason for the refusal of a call. Raises AssertionError if it does not refuse it."""
    reply = asked(call, arguments, host)
    assert reply.error is not None and reply.error[1] == "host.helper_refused", (reply, bytes(reply.result))
    return reply.error[2]

"""What a past security bug asks for, and the tests that show it: the form of ``past_advisories`` and ``past_notes``."""

from __future__ import annotations

from typing import NamedTuple


class Proof(NamedTuple):
    """``tests``: ids as pytest takes them, below ``tests/``. ``not_yet``: which part brings (the rest of) what the bug
    was in."""

    property: str
    tests: tuple[str, ...] = ()
    not_yet: str = ""


CONTRACT, FUNCTIONAL, MACHINE, UNIT = "contract", "functional", "machine", "unit"
API, COMPUTE, CONDUCTOR, CONSOLE = f"{UNIT}/api", f"{UNIT}/compute", f"{UNIT}/conductor", f"{UNIT}/console"
LIBVIRT, MODEL, PRIVILEGED, RPC = f"{UNIT}/virt/libvirt", f"{UNIT}/model", f"{UNIT}/privileged", f"{UNIT}/rpc"
SCHEDULER = f"{UNIT}/scheduler"

EC2 = "The EC2 API is not built."
VOLUMES = "Volumes are not attached yet: a server whose device needs one is refused."

"""os-brick, which makes volumes of a storage network devices of this host: each call is a process of its own.

The library is made for daemons whose threads are all native, and starts a daemon with root's rights by sudo. Here it
has neither: :mod:`nova.privileged.brick_process` runs as what nova-compute is (root, within its unit's rights), calls
the library once, and ends. So nothing blocks nova-compute; a back end that hangs costs a time-out, and the process with
all that it started is killed; and secrets are in no argument that others could list, but on its standard input.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

import nova
from nova import decoding, errors
from nova.model.base import Json
from nova.privileged.client import forwarded
from nova.privileged.runner import CommandRunner

MODULE = "nova.privileged.brick_process"
LIBRARY = logging.getLogger("os_brick")
KNOWN_S = 600.0  # how long what the host says of itself is believed


class BrickDevice(msgspec.Struct, frozen=True):
    """A volume to the library. ``protocol``: its name of how the volume is reached; ``tries``: how often it looks for
    a device; ``words``: the back end's; ``found``: what the library said of the device, if it found one."""

    protocol: str
    words: Mapping[str, Json]
    tries: int = 3
    transport: str = ""  # of iSCSI: the initiator's interface
    shared_targets: bool | None = False
    service_uuid: str = ""
    found: Mapping[str, Json] = {}

    def __repr__(self) -> str:
        return f"BrickDevice({self.protocol})"


class BrickRequest(msgspec.Struct, frozen=True):
    """``call``: properties, connect, disconnect or extend."""

    call: str
    lock_path: str
    multipath: bool = False
    enforce_multipath: bool = False
    debug: bool = False
    address: str = ""
    device: BrickDevice | None = None
    force: bool = False

    def __repr__(self) -> str:
        return f"BrickRequest({self.call})"


class BrickAnswer(msgspec.Struct, frozen=True):
    """``error``: why it failed, without secrets; empty: it did not."""

    result: Json = None
    error: str = ""


class HostWords(NamedTuple):
    """What every request says of the host."""

    lock_path: str
    multipath: bool = False
    enforce_multipath: bool = False
    debug: bool = False
    address: str = ""


def is_installed() -> bool:
    """Whether the library is there. It is not loaded for that."""
    return importlib.util.find_spec("os_brick") is not None


class Brick:
    """``host``: what each call is told. Errors of all calls: host.Brick, with the library's reason."""

    def __init__(self, runner: CommandRunner, host: HostWords, clock: Callable[[], float] = time.monotonic) -> None:
        self._runner, self._host, self._clock = runner, host, clock
        self._known: tuple[Mapping[str, Json], float] = ({}, -KNOWN_S)

    def properties(self) -> Mapping[str, Json]:
        """What the host says of itself to back ends: of an initiator that it has not, nothing."""
        known, at = self._known
        if self._clock() - at >= KNOWN_S:
            found = self.ask("properties")
            known = {name: value for name, value in found.items() if value is not None}
            self._known = known, self._clock()
        return known

    def connect(self, device: BrickDevice) -> Mapping[str, Json]:
        """Have it on this host; what the library says of the device: its ``path``, ``scsi_wwn`` and more. Repeated: the
        same."""
        found: Mapping[str, Json] = self.ask("connect", device)
        return found

    def disconnect(self, device: BrickDevice, force: bool = False) -> None:
        """Write out what is not, and take it from the host; ``force``: take it even if it cannot be written out.
        Nothing where it is not there."""
        self.ask("disconnect", device, force)

    def extend(self, device: BrickDevice) -> int | None:
        """See that it has grown; its bytes now, if the library knows."""
        found = self.ask("extend", device)
        return int(found) if found else None

    @forwarded("brick.ask")
    def ask(self, call: str, device: BrickDevice | None = None, force: bool = False) -> Json:
        """The library's answer to one of ``brick_process.CALLS``."""
        request = BrickRequest(call=call, device=device, force=force, **self._host._asdict())
        package = Path(nova.__file__).parent.parent
        try:
            done = self._runner.run([sys.executable, "-m", MODULE], stdin=msgspec.json.encode(request).decode(),
                                    environment={"PYTHONPATH": str(package), "PYTHONWARNINGS": "ignore"})
            answer = decoding.from_json(done.stdout, BrickAnswer)
        except errors.host.CommandFailed as error:
            raise errors.host.Brick(task=call, reason=error.data["reason"]) from error
        except msgspec.DecodeError as error:
            raise errors.host.Brick(task=call, reason="its process did not answer") from error
        for line in done.stderr.splitlines():
            LIBRARY.info("%s", line)
        if answer.error:
            raise errors.host.Brick(task=call, reason=answer.error)
        return answer.result

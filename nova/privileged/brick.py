"""os-brick, which attaches volumes of a storage network as devices of this host: each call is a process of its own.

The library is designed for daemons with native threads only, and starts a root daemon by sudo. Here it has neither:
:mod:`nova.privileged.brick_process` runs with nova-compute's privileges (root, within the rights of its unit), calls
the library once, and ends. So it never blocks nova-compute. If a back end hangs, the process and its children are
killed after a timeout. Secrets are passed on standard input, not in arguments, which others could list.
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
KNOWN_S = 600.0  # how long the host's properties are cached


class BrickDevice(msgspec.Struct, frozen=True):
    """A volume for the library. ``protocol``: os-brick's name of the transport; ``tries``: number of scans for a
    device; ``words``: the back end's connection data; ``found``: the library's data of the device, if it found one."""

    protocol: str
    words: Mapping[str, Json]
    tries: int = 3
    transport: str = ""  # iSCSI: the initiator's interface
    shared_targets: bool | None = False
    service_uuid: str = ""
    found: Mapping[str, Json] = {}

    def __repr__(self) -> str:
        return f"BrickDevice({self.protocol})"


class BrickRequest(msgspec.Struct, frozen=True):
    """A request to the process. ``call``: properties, connect, disconnect or extend."""

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
    """The answer of the process. ``error``: the reason of a failure, without secrets; empty on success."""

    result: Json = None
    error: str = ""


class HostWords(NamedTuple):
    """Host settings that every request includes."""

    lock_path: str
    multipath: bool = False
    enforce_multipath: bool = False
    debug: bool = False
    address: str = ""


def is_installed() -> bool:
    """Return whether the library is installed, without loading it."""
    return importlib.util.find_spec("os_brick") is not None


class Brick:
    """Calls to os-brick. ``host``: settings for each call. All calls raise host.Brick, with the library's reason."""

    def __init__(self, runner: CommandRunner, host: HostWords, clock: Callable[[], float] = time.monotonic) -> None:
        self._runner, self._host, self._clock = runner, host, clock
        self._known: tuple[Mapping[str, object], float] = ({}, -KNOWN_S)

    def properties(self) -> Mapping[str, object]:
        """Return the connector properties for back ends, without initiators that the host does not have."""
        known, at = self._known
        if self._clock() - at >= KNOWN_S:
            found = self.ask("properties")
            known = {name: value for name, value in found.items() if value is not None}
            self._known = known, self._clock()
        return known

    def connect(self, device: BrickDevice) -> Mapping[str, object]:
        """Connect the volume to this host, and return the library's data of the device: its ``path``, ``scsi_wwn`` and
        more. Idempotent."""
        found: Mapping[str, object] = self.ask("connect", device)
        return found

    def disconnect(self, device: BrickDevice, force: bool = False) -> None:
        """Flush the device and remove it from the host; ``force``: remove it even if flushing fails. Does nothing if it
        is absent."""
        self.ask("disconnect", device, force)

    def extend(self, device: BrickDevice) -> int | None:
        """Rescan the device after the volume was extended; return its size in bytes, if the library knows it."""
        found = self.ask("extend", device)
        return int(found) if found else None

    @forwarded("brick.ask")
    def ask(self, call: str, device: BrickDevice | None = None, force: bool = False) -> Json:
        """Return the library's answer to one of ``brick_process.CALLS``."""
        request = BrickRequest(call=call, device=device, force=force, **self._host._asdict())
        package = Path(nova.__file__).parent.parent
        try:
            done = self._runner.run([sys.executable, "-m", MODULE], stdin=msgspec.json.encode(request).decode(),
                                    environment={"PYTHONPATH": str(package), "PYTHONWARNINGS": "ignore"})
            answer = decoding.from_json(done.stdout, BrickAnswer)
        except errors.host.CommandFailed as error:
            raise errors.host.Brick(task=call, reason=error.data["reason"]) from error
        except msgspec.DecodeError as error:
            raise errors.host.Brick(task=call, reason="the os-brick process did not answer") from error
        for line in done.stderr.splitlines():
            LIBRARY.info("%s", line)
        if answer.error:
            raise errors.host.Brick(task=call, reason=answer.error)
        return answer.result

"""A call of os-brick in a process of its own: ``python -m nova.privileged.brick_process``. The request is on standard
input, the answer on standard output (:class:`nova.privileged.brick.BrickRequest`, ``BrickAnswer``), the library's log
on standard error.

No value that may be a secret appears in an answer or a log line.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec

from nova import decoding
from nova.privileged.brick import BrickAnswer, BrickDevice, BrickRequest


class VolumeConnector(Protocol):
    """os-brick's connector of one protocol."""

    def connect_volume(self, connection_properties: dict[str, object]) -> Mapping[str, object]:
        """Connect the volume; return the library's data of the device."""

    def disconnect_volume(self, connection_properties: dict[str, object], device_info: dict[str, object] | None,
                          force: bool, ignore_errors: bool) -> None:
        """Flush and disconnect the volume."""

    def extend_volume(self, connection_properties: dict[str, object]) -> int | None:
        """Rescan the device; return its size in bytes, if it is known."""


class ConnectorMaker(Protocol):
    """``os_brick.initiator.connector.InitiatorConnector``."""

    def factory(self, protocol: str, root_helper: str, *, use_multipath: bool, device_scan_attempts: int,
                transport: str = ...) -> VolumeConnector:
        """Return the connector of a protocol."""


class ConnectorModule(Protocol):
    """``os_brick.initiator.connector``."""

    @property
    def InitiatorConnector(self) -> ConnectorMaker:
        """The maker of connectors."""

    def get_connector_properties(self, root_helper: str, my_ip: str, multipath: bool, enforce_multipath: bool
                                 ) -> Mapping[str, object]:
        """Return the host's properties for back ends."""


class BrickLibrary(Protocol):
    """The parts of os-brick that calls use. ``guard``: locks the back end's shared targets."""

    connector: ConnectorModule
    guard: Callable[[Mapping[str, object]], AbstractContextManager[object]]

    def connector_of(self, request: BrickRequest, device: BrickDevice) -> VolumeConnector:
        """Return the connector for a device."""


SHORTEST_SECRET = 4
#: Name parts of connection data whose values must not be shown.
SECRET_NAMES = ("password", "secret", "token", "key", "auth_username")
LONGEST_REASON = 500


def is_secret(name: str) -> bool:
    """Return whether connection data of that name may be secret."""
    return any(part in name.lower() for part in SECRET_NAMES)


def without_secrets(words: Mapping[str, object]) -> dict[str, object]:
    """Return the connection data that may be kept."""
    return {name: value for name, value in words.items() if not is_secret(name)}


def hide(text: str, words: Mapping[str, object]) -> str:
    """Return the text without the secrets in ``words``."""
    values = {str(value) for name, value in words.items() if is_secret(name) and value}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= SHORTEST_SECRET:
            text = text.replace(value, "***")
    return text


def answer(request: BrickRequest, library: Callable[[BrickRequest], BrickLibrary]) -> BrickAnswer:
    """Return the answer to a request. ``library``: initializes os-brick, and returns its parts."""
    words = request.device.words if request.device is not None else {}
    try:
        brick = library(request)
        return BrickAnswer(CALLS[request.call](brick, request))
    except Exception as error:  # the library's plugins raise arbitrary exceptions
        reason = " ".join(f"{error}".split()) or type(error).__name__
        return BrickAnswer(error=hide(reason, words)[:LONGEST_REASON].rstrip("."))


def _properties(brick: BrickLibrary, request: BrickRequest) -> object:
    return brick.connector.get_connector_properties(
        "", request.address, request.multipath, request.enforce_multipath)


def _connect(brick: BrickLibrary, request: BrickRequest) -> object:
    device = _device(request)
    with _turn(brick, device):
        return brick.connector_of(request, device).connect_volume(dict(device.words))


def _disconnect(brick: BrickLibrary, request: BrickRequest) -> None:
    device = _device(request)
    with _turn(brick, device):
        brick.connector_of(request, device).disconnect_volume(
            dict(device.words), dict(device.found) or None, force=request.force, ignore_errors=request.force)


def _extend(brick: BrickLibrary, request: BrickRequest) -> object:
    device = _device(request)
    return brick.connector_of(request, device).extend_volume(dict(device.words))


CALLS: Mapping[str, Callable[[BrickLibrary, BrickRequest], object]] = {
    "properties": _properties, "connect": _connect, "disconnect": _disconnect, "extend": _extend}


def _device(request: BrickRequest) -> BrickDevice:
    if request.device is None:
        raise ValueError(f"{request.call} without a device")
    return request.device


@contextlib.contextmanager
def _turn(brick: BrickLibrary, device: BrickDevice) -> Iterator[None]:
    """Lock the back end's shared targets on this host against all other processes that attach or detach there,
    including Cinder's."""
    if device.shared_targets is False or not device.service_uuid:
        yield
    else:
        with brick.guard({"shared_targets": device.shared_targets, "service_uuid": device.service_uuid}):
            yield


class OsBrick:
    """The parts of the library, initialized for one request."""

    def __init__(self, request: BrickRequest) -> None:
        from oslo_concurrency import lockutils
        from oslo_config import cfg

        cfg.CONF([], project="nova", default_config_files=[], default_config_dirs=[])
        Path(request.lock_path).mkdir(parents=True, exist_ok=True)
        lockutils.set_defaults(request.lock_path)
        import os_brick
        from os_brick import privileged
        from os_brick.initiator import connector, utils

        os_brick.setup(cfg.CONF)
        cfg.CONF.set_override("lock_path", request.lock_path, "os_brick")
        for name in ("default", "brick_privsep_hide_output"):  # root needs no privileged daemon
            if hasattr(privileged, name):
                getattr(privileged, name).set_client_mode(False)
        self.connector: ConnectorModule = connector
        self.guard: Callable[[Mapping[str, object]], AbstractContextManager[object]] = utils.guard_connection

    def connector_of(self, request: BrickRequest, device: BrickDevice) -> VolumeConnector:
        """Return the connector for a protocol. Raises ValueError or similar if this release of the library has none."""
        more = {"transport": device.transport} if device.transport else {}
        return self.connector.InitiatorConnector.factory(
            device.protocol, "", use_multipath=request.multipath, device_scan_attempts=device.tries, **more)


class HidingFormatter(logging.Formatter):
    """Log formatter that hides secrets; without ``stacks``, each record is one line."""

    def __init__(self, words: Mapping[str, object], stacks: bool = False) -> None:
        super().__init__("%(levelname)s %(name)s %(message)s")
        self._words, self._stacks = words, stacks

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's text with its secrets hidden."""
        if not self._stacks:
            record.exc_info = record.exc_text = None
        return hide(super().format(record), self._words)


def main() -> None:
    """Answer the request on standard input. Output that libraries print goes to the log."""
    os.umask(0o002)  # locks are shared with other users
    own = os.dup(1)
    os.dup2(2, 1)
    request = decoding.from_json(sys.stdin.buffer.read(), BrickRequest)
    handler = logging.StreamHandler()
    handler.setFormatter(HidingFormatter(request.device.words if request.device is not None else {}, request.debug))
    logging.basicConfig(level=logging.DEBUG if request.debug else logging.WARNING, handlers=[handler])
    with os.fdopen(own, "wb") as out:
        out.write(msgspec.json.encode(answer(request, OsBrick)))


if __name__ == "__main__":
    main()

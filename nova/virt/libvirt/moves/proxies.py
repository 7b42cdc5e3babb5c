"""The proxy processes of live migrations on this host (``nova.migrationproxy``): started, found again, ended.

Like a disk export, such a process survives nova-compute, and is found by the pid file that it keeps open.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec

import nova
from nova import decoding, errors, failures
from nova.migrationproxy import (
    LIBVIRT_URI,
    NOTES_FILE,
    PID_FILE,
    SECRET_DIGITS,
    ListenerPlan,
    Ready,
    TunnelPlan,
)
from nova.model.guest.orders import MigrationListener
from nova.privileged import pid_files
from nova.privileged.runner import conversation
from nova.virt.libvirt.settings.moves import MoveSettings, is_host

LOG = logging.getLogger(__name__)

PLAN_FILE, READY_FILE = "plan.json", "ready.json"
ANSWER_S = 30.0
#: Local sockets of libvirtd: of the modular QEMU daemon, or of the monolithic one.
LIBVIRT_SOCKETS = ("/run/libvirt/virtqemud-sock", "/run/libvirt/libvirt-sock")
LONGEST_CERTIFICATE = 4096  # characters of PEM

Kept = TypeVar("Kept", bound=msgspec.Struct)


@dataclass(frozen=True, kw_only=True)
class MigrationProxies:
    """Proxies. ``owner()``: QEMU's user and group on this host; ``libvirt_uri``: of this host's libvirtd."""

    settings: MoveSettings
    owner: Callable[[], tuple[int, int]]
    libvirt_uri: str = LIBVIRT_URI

    def directory(self, server_uuid: str) -> Path:
        """Return the directory for the files and sockets of a migration's process."""
        return self.settings.migrations_path / server_uuid

    def open_listener(self, server_uuid: str, definition: str) -> MigrationListener:
        """Start the listener for an arriving guest; return the running one if it is for the same definition. Raises
        move.Proxy."""
        directory, moves = self.directory(server_uuid), self.settings
        there, ready = _read(directory / PLAN_FILE, ListenerPlan), _read(directory / READY_FILE, Ready)
        lives = pid_files.running(directory / PID_FILE) is not None
        if there is None or ready is None or not lives or there.definition != definition:
            there = ListenerPlan(directory=str(directory), address=moves.address, ports=moves.migration_ports,
                                 secret=secrets.token_hex(SECRET_DIGITS // 2), definition=definition,
                                 owner=self.owner(), libvirt=_socket_of(self.libvirt_uri))
            ready = self._start("gate", server_uuid, there)
        return MigrationListener(address=there.address, port=ready.port, certificate=ready.certificate,
                                 secret=there.secret)

    def open_tunnel(self, server_uuid: str, gate: MigrationListener) -> None:
        """Start the tunnel to ``gate``, which the destination announced. Raises move.BadDestination, move.Proxy."""
        _check(gate)
        directory = self.directory(server_uuid)
        plan = TunnelPlan(directory=str(directory), address=gate.address, port=gate.port, secret=gate.secret,
                          certificate=gate.certificate, owner=self.owner())
        if _read(directory / PLAN_FILE, TunnelPlan) != plan or pid_files.running(directory / PID_FILE) is None:
            self._start("tunnel", server_uuid, plan)

    def close(self, server_uuid: str) -> None:
        """End the guest's proxy process, if there is one, and log its notes."""
        directory = self.directory(server_uuid)
        pid_files.end(directory / PID_FILE)
        for note in self.notes(server_uuid):
            LOG.warning("live migration proxy: %s", note, extra={"server": server_uuid})
        shutil.rmtree(directory, ignore_errors=True)

    def notes(self, server_uuid: str) -> list[str]:
        """Return what the process refused, or could not do."""
        with contextlib.suppress(OSError):
            return (self.directory(server_uuid) / NOTES_FILE).read_text().splitlines()
        return []

    def _start(self, kind: str, server_uuid: str, plan: ListenerPlan | TunnelPlan) -> Ready:
        self.close(server_uuid)
        directory = self.directory(server_uuid)
        for path in (directory.parent, directory):
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o711)  # QEMU's user must enter it, independent of the umask
        argv = ["env", f"PYTHONPATH={Path(nova.__file__).parent.parent}", sys.executable, "-m", "nova.migrationproxy",
                kind]
        with failures.translated((OSError, msgspec.DecodeError, errors.host.CommandFailed),
                lambda error: errors.move.Proxy(reason=f"its process did not start ({error})")), \
                conversation(argv, ANSWER_S) as talk:
            talk.say(msgspec.json.encode(plan) + b"\n")
            ready = decoding.from_json(talk.hear() or b"null", Ready)
        if ready.error:
            raise errors.move.Proxy(reason=ready.error)
        for name, value in ((PLAN_FILE, plan), (READY_FILE, ready)):
            _keep(directory / name, value)
        return ready


def _socket_of(uri: str) -> str:
    """Return the socket that ``uri`` names, else an existing one."""
    named = parse_qs(urlsplit(uri).query).get("socket")
    return named[0] if named else next((path for path in LIBVIRT_SOCKETS if Path(path).exists()), LIBVIRT_SOCKETS[-1])


def _check(gate: MigrationListener) -> None:
    if not is_host(gate.address) or not 0 < gate.port < 65536:
        raise errors.move.BadDestination(reason=f"its listener is {gate.address[:200]!r} port {gate.port}")
    if not re.fullmatch(f"[0-9a-f]{{{SECRET_DIGITS}}}", gate.secret) or len(gate.certificate) > LONGEST_CERTIFICATE:
        raise errors.move.BadDestination(reason="its secret or its certificate is invalid")


def _keep(path: Path, value: msgspec.Struct) -> None:
    """Write a file that only root can read, because it has the move's secret."""
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as target:
        target.write(msgspec.json.encode(value))


def _read(path: Path, kind: type[Kept]) -> Kept | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return decoding.from_json(path.read_bytes(), kind)
    return None

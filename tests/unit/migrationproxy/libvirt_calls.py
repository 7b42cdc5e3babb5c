"""Calls as a source's libvirtd makes them in a migration, for tests."""

from __future__ import annotations

from pathlib import Path

from nova.migrationproxy import Channel, socket_uri
from nova.migrationproxy.wire import REMOTE_PROGRAM, REMOTE_VERSION, Message, Procedure, Type

UUID, NAME = "5f1c2d0a-58c4-4c55-9f0e-1d0f7d1f9a11", "instance-00000001"
DEFINITION = f"<domain><uuid>{UUID}</uuid><name>{NAME}</name><os><type>hvm</type></os><devices/></domain>"
FLAGS = 0x9B  # LIVE, PEER2PEER, PERSIST_DEST, UNDEFINE_SOURCE, NON_SHARED_INC
COOKIE = f"<qemu-migration><name>{NAME}</name><uuid>{UUID}</uuid><cpu/></qemu-migration>"


def number(value: int) -> bytes:
    return value.to_bytes(4)


def text(value: str) -> bytes:
    raw = value.encode()
    return number(len(raw)) + raw + bytes(-len(raw) % 4)


def parameter(name: str, value: str | int) -> bytes:
    return text(name) + (number(7) + text(value) if isinstance(value, str) else number(4) + value.to_bytes(8))


def call(procedure: int, payload: bytes = b"", serial: int = 1) -> Message:
    return Message(REMOTE_PROGRAM, REMOTE_VERSION, procedure, Type.CALL, serial, 0, payload)


def opening(name: str | None = "qemu:///system", flags: int = 0) -> Message:
    return call(Procedure.OPEN, (number(1) + text(name) if name is not None else number(0)) + number(flags))


def parameters(directory: Path, **changes: str | int | None) -> dict[str, str | int]:
    given = {"destination_xml": DEFINITION, "migrate_uri": socket_uri(directory, Channel.MEMORY),
             "disks_uri": socket_uri(directory, Channel.DISKS), "migrate_disks": "vda", "bandwidth": 100, **changes}
    return {name: value for name, value in given.items() if value is not None}


def preparing(given: dict[str, str | int], cookie: str = COOKIE, flags: int = FLAGS) -> Message:
    listed = number(len(given)) + b"".join(parameter(*one) for one in given.items())
    return call(Procedure.PREPARE, listed + text(cookie + "\0") + number(flags))


def finishing(given: dict[str, str | int], cookie: str = COOKIE, flags: int = FLAGS) -> Message:
    prepared = preparing({**given, "destination_name": NAME, **given}, cookie, flags)
    return prepared._replace(procedure=Procedure.FINISH, payload=prepared.payload + number(0))


def answer(to: Message, payload: bytes = b"", status: int = 0) -> Message:
    return to._replace(type=Type.REPLY, status=status, payload=payload)

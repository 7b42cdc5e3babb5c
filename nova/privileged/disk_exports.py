"""Files of a host offered to other hosts, read-only, by NBD: one process of qemu-storage-daemon for each guest.

Who fetches a file must know its secret, of 128 random bits. An export's name is none: NBD tells it to whoever asks.
So the secret is a TLS key that both ends have, which encrypts what is sent, too. The process outlives us, and is
found again by its pid file, which it writes itself and keeps open as long as it lives. It ends by itself after a day,
should nobody end it before.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from nova import decoding, errors
from nova.privileged import pid_files
from nova.privileged.client import forwarded
from nova.privileged.opened_files import descriptor_of
from nova.privileged.runner import Conversation, conversation
from nova.privileged.sandbox import ToolFiles, make_empty, sandboxed

PROGRAM = "qemu-storage-daemon"
PID_FILE, OFFER_FILE, KEYS = "exports.pid", "exports.json", "exports.psk"
KEYS_FILE = "keys.psk"  # as QEMU calls it
KEY_PREFIX = ".key-"
#: The group ffdhe2048 of RFC 7919, as `openssl genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048` writes it.
#: QEMU makes a new one for each process that offers where it finds none: up to seconds of a processor's time.
DH_FILE = "dh-params.pem"  # as QEMU calls it
DH_PARAMETERS = """\
-----BEGIN DH PARAMETERS-----
MIIBCAKCAQEA//////////+t+FRYortKmq/cViAnPTzx2LnFg84tNpWp4TZBFGQz
+8yTnc4kmz75fS/jY2MMddj2gbICrsRhetPfHtXV/WVhJDP1H18GbtCFY2VVPe0a
87VXE15/V8k1mE8McODmi3fipona8+/och3xWKE2rec1MKzKT0g6eXq8CrGCsyT7
YdEIqUuyyOP7uWrat2DX9GgdT0Kj3jlN9K5W7edjcrsZCwenyO4KbXCeAvzhzffi
7MA0BM0oNC9hkXL+nOmFg/+OTxIy7vKBg8P+OxtMb61zO7X8vC7CIAXFjvGDfRaD
ssbzSibBsu/6iGtCOGEoXJf//////////wIBAg==
-----END DH PARAMETERS-----
"""
LONGEST_S = 24 * 3600
ANSWER_S = 30.0  # for all that is asked of it at its start
BUSY = ("Address already in use", "Failed to bind")


class Listen(NamedTuple):
    address: str
    ports: tuple[int, int]


class ExportOffer(msgspec.Struct, frozen=True):
    """``names``: by what its file is called, the secret of each export."""

    address: str
    port: int
    names: dict[str, str]
    paths: dict[str, str]


class _Refused(Exception):
    """What the daemon said."""


@forwarded("disk_exports.offer")
def offer(folder: Path, files: Mapping[str, Path | str], listen: Listen) -> ExportOffer:
    """Have ``files`` offered; the same offer for as long as its process lives. A helper keeps what it needs in a folder
    of its own, which has the name of ``folder``. host.Export."""
    paths = {name: path if isinstance(path, str) else str(path) for name, path in files.items()}
    there = _read(folder)
    if there is not None and there.paths == paths and pid_files.running(folder / PID_FILE) is not None:
        return there
    withdraw(folder)
    made = _start(folder, paths, listen)
    part = folder / f".{OFFER_FILE}.part"
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as target:
        target.write(msgspec.json.encode(made))
    os.replace(part, folder / OFFER_FILE)
    return made


@forwarded("disk_exports.withdraw")
def withdraw(folder: Path) -> None:
    """End what is offered from ``folder``. Nothing when nothing is."""
    pid_files.end(folder / PID_FILE)
    for name in (OFFER_FILE, PID_FILE):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / KEYS, ignore_errors=True)


def _read(folder: Path) -> ExportOffer | None:
    try:
        return decoding.from_json((folder / OFFER_FILE).read_bytes(), ExportOffer)
    except (OSError, msgspec.DecodeError):
        return None


def _start(folder: Path, paths: Mapping[str, str], listen: Listen) -> ExportOffer:
    pid_file, keys, names = str(folder / PID_FILE), folder / KEYS, {name: secrets.token_hex(16) for name in paths}
    argv = ["timeout", "--foreground", "--kill-after=10", str(LONGEST_S), PROGRAM, "--pidfile", pid_file,
            "--chardev", "stdio,id=orders", "--monitor", "chardev=orders"]
    try:
        _keep_keys(keys, names.values())
        (keys / DH_FILE).write_text(DH_PARAMETERS)
        make_empty(pid_file)
        files = ToolFiles(read=(*paths.values(), str(keys)), write=(pid_file,), network=True, lasts=True)
        opened = tuple(found for path in paths.values() if (found := descriptor_of(path)) is not None)
        with conversation(sandboxed(argv, files), ANSWER_S, opened) as talk:
            try:
                return ExportOffer(listen.address, _serve(talk, paths, listen, _Names(names, keys)), names,
                                   {name: str(path) for name, path in paths.items()})
            except (_Refused, OSError, ValueError):
                talk.end()
                raise
    except errors.host.CommandFailed as error:
        raise errors.host.Export(reason=error.data["reason"]) from error
    except (_Refused, OSError, ValueError) as error:
        raise errors.host.Export(reason=str(error) or f"{PROGRAM} ended: is it installed?") from error


class _Names(NamedTuple):
    """The secret of each file, and the directory that has their keys."""

    secrets: Mapping[str, str]
    keys: Path


def _serve(talk: Conversation, paths: Mapping[str, str], listen: Listen, names: _Names) -> int:
    """The port."""
    talk.hear()  # its greeting
    _ask(talk, "qmp_capabilities")
    _ask(talk, "object-add", **{"id": "tls", "endpoint": "server", "qom-type": "tls-creds-psk",
                                "dir": str(names.keys)})
    port = _listen(talk, listen)
    for number, (name, path) in enumerate(paths.items()):
        _ask(talk, "blockdev-add", **{"driver": "file", "node-name": f"file{number}", "filename": path,
                                         "read-only": True})
        _ask(talk, "block-export-add", **{"type": "nbd", "id": f"export{number}", "node-name": f"file{number}",
                                             "name": _shown(names.secrets[name]), "writable": False})
    return port


def _listen(talk: Conversation, listen: Listen) -> int:
    first, last = listen.ports
    ports = list(range(first, last + 1))
    random.shuffle(ports)
    for port in ports:
        where = {"type": "inet", "data": {"host": listen.address, "port": str(port)}}
        try:
            _ask(talk, "nbd-server-start", addr=where, **{"max-connections": 0, "tls-creds": "tls"})
            return port
        except _Refused as error:
            if not any(text in str(error) for text in BUSY):
                raise
    raise _Refused(f"no port of {first} to {last} is free")


def _ask(talk: Conversation, execute: str, **arguments: object) -> None:
    talk.say(json.dumps({"execute": execute, "arguments": arguments}).encode() + b"\n")
    while True:
        line = talk.hear()
        if not line:
            raise _Refused(f"{PROGRAM} ended: is it installed?")
        answer = json.loads(line)
        if "error" in answer:
            raise _Refused(answer["error"].get("desc", "it refused"))
        if "return" in answer:
            return


# --- what both sides make of a secret

def _shown(secret: str) -> str:
    """The export's name, and the name of its key: no secret, and as hard to guess."""
    return hashlib.sha256(f"name {secret}".encode()).hexdigest()[:32]


def _keep_keys(directory: Path, of: Iterable[str]) -> None:
    """Read by root alone, at each handshake. The directory is ours: nothing that was there is written to."""
    directory.mkdir(mode=0o700)
    with open(os.open(directory / KEYS_FILE, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as target:
        for secret in of:
            target.write(f"{_shown(secret)}:{hashlib.sha256(f'key {secret}'.encode()).hexdigest()}\n")


# --- the other side

class ExportSource(NamedTuple):
    """Where a file is read. ``address`` and ``port`` are what another host told: checked by whoever calls."""

    address: str
    port: int
    secret: str


class ReadExport(NamedTuple):
    """An export that is read; ``keys``: the directory that has its key."""

    source: ExportSource
    keys: str

    @property
    def objects(self) -> tuple[str, ...]:
        """What qemu-img makes first."""
        return (f"tls-creds-psk,id=tls,dir={_escaped(self.keys)},endpoint=client,"
                f"username={_shown(self.source.secret)}",)

    @property
    def options(self) -> str:
        """Its image options."""
        source = self.source
        return (f"driver=raw,file.driver=nbd,file.server.type=inet,file.server.host={_escaped(source.address)},"
                f"file.server.port={source.port},file.export={_shown(source.secret)},file.tls-creds=tls")


@contextlib.contextmanager
def reading(source: ExportSource, beside: Path) -> Iterator[ReadExport]:
    """An export that is to be read; its key lies in a directory in ``beside`` as long. Nobody else reads into
    ``beside`` at the same time: what a kill left there goes.
    """
    for left in beside.glob(f"{KEY_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=KEY_PREFIX, dir=beside) as made:
        keys = Path(made) / KEYS
        _keep_keys(keys, [source.secret])
        yield ReadExport(source, str(keys))


def _escaped(value: str) -> str:
    """As one value of an option."""
    return value.replace(",", ",,")

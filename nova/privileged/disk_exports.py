"""Read-only export of a host's files to other hosts by NBD: one qemu-storage-daemon process for each guest.

To fetch a file, a client must know its secret of 128 random bits. The export's name is not secret: NBD tells it to
every client. So the secret is a pre-shared TLS key, which also encrypts the data. The process outlives this one. It is
found again by its pid file, which it writes itself and keeps open while it runs. It ends after a day, unless it was
ended before.
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

from nova import decoding, errors, failures
from nova.privileged import pid_files
from nova.privileged.client import forwarded
from nova.privileged.opened_files import descriptor_of
from nova.privileged.runner import Conversation, conversation
from nova.privileged.sandbox import ToolFiles, make_empty, sandboxed

PROGRAM = "qemu-storage-daemon"
PID_FILE, OFFER_FILE, KEYS = "exports.pid", "exports.json", "exports.psk"
KEYS_FILE = "keys.psk"  # name that QEMU expects
KEY_PREFIX = ".key-"
#: The group ffdhe2048 of RFC 7919, as `openssl genpkey -genparam -algorithm DH -pkeyopt group:ffdhe2048` writes it.
#: Without such a file, QEMU generates a group for each exporting process, which takes up to seconds of processor time.
DH_FILE = "dh-params.pem"  # name that QEMU expects
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
ANSWER_S = 30.0  # for all commands at the start
BUSY = ("Address already in use", "Failed to bind")


class Listen(NamedTuple):
    address: str
    ports: tuple[int, int]


class ExportOffer(msgspec.Struct, frozen=True):
    """An export on this host. ``names``: file name -> the secret of its export."""

    address: str
    port: int
    names: dict[str, str]
    paths: dict[str, str]


class _Refused(Exception):
    """The daemon's error message."""


@forwarded("disk_exports.offer")
def offer(folder: Path, files: Mapping[str, Path | str], listen: Listen) -> ExportOffer:
    """Export ``files``; return the existing export while its process runs. A helper keeps its data in its own directory
    with the name of ``folder``. Raises host.Export."""
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
    """End the export from ``folder``. Does nothing if there is none."""
    pid_files.end(folder / PID_FILE)
    for name in (OFFER_FILE, PID_FILE):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / KEYS, ignore_errors=True)


def _read(folder: Path) -> ExportOffer | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return decoding.from_json((folder / OFFER_FILE).read_bytes(), ExportOffer)
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
        with conversation(sandboxed(argv, files), ANSWER_S, opened) as talk, \
                failures.on_failure(talk.end, on=(_Refused, OSError, ValueError)):
            return ExportOffer(listen.address, _serve(talk, paths, listen, _Names(names, keys)), names,
                               {name: str(path) for name, path in paths.items()})
    except errors.host.CommandFailed as error:
        raise errors.host.Export(reason=error.data["reason"]) from error
    except (_Refused, OSError, ValueError) as error:
        raise errors.host.Export(reason=str(error) or f"{PROGRAM} ended: is it installed?") from error


class _Names(NamedTuple):
    """The secret of each file, and the directory that contains their keys."""

    secrets: Mapping[str, str]
    keys: Path


def _serve(talk: Conversation, paths: Mapping[str, str], listen: Listen, names: _Names) -> int:
    """Set up the exports, and return the port."""
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
    raise _Refused(f"none of the ports {first} to {last} is free")


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


# --- derivation from a secret, for both sides

def _shown(secret: str) -> str:
    """Return the export's name, which is also the name of its key: not secret, but as hard to guess."""
    return hashlib.sha256(f"name {secret}".encode()).hexdigest()[:32]


def _keep_keys(directory: Path, of: Iterable[str]) -> None:
    """Write the keys, which only root reads, at each handshake. The directory is new, so no existing file is written
    to."""
    directory.mkdir(mode=0o700)
    with open(os.open(directory / KEYS_FILE, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as target:
        for secret in of:
            target.write(f"{_shown(secret)}:{hashlib.sha256(f'key {secret}'.encode()).hexdigest()}\n")


# --- the reading side

class ExportSource(NamedTuple):
    """The location of an exported file. ``address`` and ``port`` come from another host; the caller has validated
    them."""

    address: str
    port: int
    secret: str


class ReadExport(NamedTuple):
    """An export to read; ``keys``: the directory that contains its key."""

    source: ExportSource
    keys: str

    @property
    def objects(self) -> tuple[str, ...]:
        """Objects that qemu-img creates first."""
        return (f"tls-creds-psk,id=tls,dir={_escaped(self.keys)},endpoint=client,"
                f"username={_shown(self.source.secret)}",)

    @property
    def options(self) -> str:
        """Image options of the export."""
        source = self.source
        return (f"driver=raw,file.driver=nbd,file.server.type=inet,file.server.host={_escaped(source.address)},"
                f"file.server.port={source.port},file.export={_shown(source.secret)},file.tls-creds=tls")


@contextlib.contextmanager
def reading(source: ExportSource, beside: Path) -> Iterator[ReadExport]:
    """Prepare an export for reading; its key is kept in a directory in ``beside`` for the duration. No other process
    reads into ``beside`` at the same time: leftovers of a kill are removed."""
    for left in beside.glob(f"{KEY_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=KEY_PREFIX, dir=beside) as made:
        keys = Path(made) / KEYS
        _keep_keys(keys, [source.secret])
        yield ReadExport(source, str(keys))


def _escaped(value: str) -> str:
    """Return the value escaped for use in an option."""
    return value.replace(",", ",,")

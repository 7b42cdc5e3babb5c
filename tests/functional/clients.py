"""Unmodified clients as a test uses them: a cloud with an identity service, and programs that talk to it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.fakes.keystone import FakeKeystone
from tests.functional.cloud import Cloud

VENV = Path(os.environ.get("NOVA_STACK_VENVS", "/opt/nova-stack")) / "clients"
ACCOUNTS = {"admin": "admin's secret", "demo": "demo's secret"}


class Failed(AssertionError):
    """A command ended with an exit code above 0, or a call raised. ``said``: everything it printed."""

    def __init__(self, what: str, said: str, status: int | None = None) -> None:
        self.said, self.status = said, status
        super().__init__(f"{what}: {said}")


@dataclass
class Worker:
    """A process of ``client_worker.py``."""

    process: subprocess.Popen[str]
    keystone: FakeKeystone

    def ask(self, user: str, **order: Any) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps({**order, "env": self.keystone.environment(user)}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line.strip(), f"the clients' process ended at {order}"
        return dict(json.loads(line))


@dataclass(frozen=True)
class User:
    """A person at a terminal. ``worker`` runs what they type."""

    worker: Worker
    name: str
    version: str = ""  # --os-compute-api-version; the client's own choice when empty

    def at(self, version: str) -> User:
        return User(self.worker, self.name, version)

    def run(self, program: str, *words: str) -> str:
        """What it prints. Raises Failed."""
        version = [f"--os-compute-api-version={self.version}"] if self.version else []
        done = self.worker.ask(self.name, command=[program, *version, *words])
        if done["code"]:
            raise Failed(f"{program} {' '.join(words)} ended with {done['code']}", done["out"] + done["err"])
        return str(done["out"])

    def openstack(self, line: str, *more: str) -> Any:
        """The words of a line, and words that have spaces; what `-f json` printed."""
        return json.loads(self.run("openstack", *line.split(), *more, "-f", "json"))

    def do(self, line: str, *more: str) -> None:
        """A command of `openstack` that prints nothing that matters."""
        self.run("openstack", *line.split(), *more)

    def nova(self, line: str, *more: str) -> str:
        return self.run("nova", *line.split(), *more)

    def table(self, line: str, *more: str) -> list[dict[str, str]]:
        """The rows of a table that `nova` prints, by its header's names."""
        lines = [row for row in self.nova(line, *more).splitlines() if row.startswith("|")]
        cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in lines]
        return [dict(zip(cells[0], row, strict=True)) for row in cells[1:]] if cells else []

    def properties(self, line: str, *more: str) -> dict[str, str]:
        """A table of two columns as one mapping."""
        rows = [tuple(row.values()) for row in self.table(line, *more)]
        return {str(row[0]): str(row[1]) for row in rows}

    def sdk(self, call: str, *args: Any, **kwargs: Any) -> Any:
        """A method of openstacksdk's compute proxy. Raises Failed with its status."""
        done = self.worker.ask(self.name, call=f"compute.{call}", args=args, kwargs=kwargs)
        if "error" in done:
            raise Failed(f"{call}: {done['error']}", done["message"], done["status"])
        return done["value"]


def public_key(folder: Path) -> Path:
    """A new SSH key's public half, in a file; the machine need not have ssh-keygen."""
    public = Ed25519PrivateKey.generate().public_key()
    path = folder / "key.pub"
    path.write_bytes(public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b" made@here\n")
    return path


@contextlib.contextmanager
def at_terminals(cloud: Cloud) -> Iterator[Worker]:
    """Skips where the clients are not installed."""
    python = VENV / "bin" / "python"
    if not python.exists():
        pytest.skip(f"needs the clients' environment, {VENV}: `bin/test functional` makes it")
    endpoints = {"compute": cloud.url, "image": cloud.glance.url,
                 **({"placement": cloud.placement_url} if cloud.plan.placement else {})}
    log = (cloud.root / "log" / "clients.log").open("w")
    with log, FakeKeystone(endpoints, ACCOUNTS) as keystone:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "PYTHON"))}
        worker = Path(__file__).with_name("client_worker.py")
        process = subprocess.Popen([python, worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                   text=True, cwd=cloud.root, env={**kept, "HOME": str(cloud.root)})
        try:
            yield Worker(process, keystone)
        finally:
            process.kill()
            process.communicate()

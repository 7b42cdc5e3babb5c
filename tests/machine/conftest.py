"""Sandboxes that files share: hosts with libvirt, Keystone, Glance, MariaDB, RabbitMQ."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import sampling

if TYPE_CHECKING:  # what they need is only there where the stack can be installed
    from tests.machine.live import Live
    from tests.machine.stack import Sandbox

#: The state directory of a sandbox that is up already: it is used and left as it is. For those who write tests.
GIVEN = "NOVA_TEST_STACK"


@pytest.fixture(scope="session")
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with made_sandbox(request) as made:
        yield made


@pytest.fixture(scope="session")
def wide_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Another, of three hosts, which keep guests' disks in one directory."""
    with made_sandbox(request, "--hosts", "3", "--shared-storage") as made:
        yield made


@contextlib.contextmanager
def made_sandbox(request: pytest.FixtureRequest, *options: str) -> Iterator[Sandbox]:
    if reason := _unable():
        pytest.skip(f"no sandbox here: {reason}")
    from tests.machine import stack

    if given := os.environ.get(GIVEN):
        yield stack.Sandbox(Path(given))
        return
    top = Path(tempfile.mkdtemp(prefix="nt", dir="/var/tmp"))  # short: sockets lie in it
    top.chmod(0o755)  # daemons of several users have to get in
    made = stack.Sandbox(top / "s", options)
    failed_before = request.session.testsfailed
    try:
        made.up()
        if not {"--driver", "--cells"} & {*options}:  # with Neutron, rules of groups are its own
            made.open_group("admin")
        yield made
        if request.session.testsfailed > failed_before:
            _keep_logs(made)
        shape = stack.outline(made)
        made.stores.close()
        made.tool("clean")
        assert stack.remains(shape) == []
    except BaseException:
        _keep_logs(made)
        made.tool("clean", code=None)
        raise
    finally:
        shutil.rmtree(top, ignore_errors=True)


def _keep_logs(made: Sandbox) -> None:
    if (made.state / "logs").is_dir():
        kept = tempfile.mkdtemp(prefix="nova-machine-logs-")
        shutil.copytree(made.state / "logs", kept, dirs_exist_ok=True)
        print(f"the daemons' logs are in {kept}")


def _unable() -> str | None:
    """`bin/stack` installs what it needs from Debian's packages; the rest is namespaces, and root."""
    if os.geteuid() != 0:
        return "needs root"
    return None if shutil.which("apt-get") else "bin/stack installs Debian's packages, and there is no apt-get"


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """What chooses samples: given, or the same for a day."""
    return sampling.SEED


@pytest.fixture
def dice(seed: int, request: pytest.FixtureRequest) -> random.Random:
    return random.Random(f"{seed} {request.node.name}")


@pytest.fixture
def demo(sandbox: Sandbox) -> Live:
    """The cloud's ordinary user."""
    return sandbox.api("demo")


@pytest.fixture
def admin(sandbox: Sandbox) -> Live:
    return sandbox.api("admin")


#: What a sandbox with Neutron is like: nothing boots in it, so that its API and what nova does with it is quick to try.
NEUTRON = ("--driver", "fake", "--computes", "3", "--no-demo", "--neutron")


@pytest.fixture(scope="module")
def neutron_sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with made_sandbox(request, *NEUTRON) as made:
        yield made

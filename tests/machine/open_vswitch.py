"""Open vSwitch with its datapath in the daemon (netdev), so that it needs no kernel module: for a room with a /run of
its own, where everybody finds it in the usual place."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

RUN = Path("/run/openvswitch")
DATABASE, SCHEMA = RUN / "conf.db", Path("/usr/share/openvswitch/vswitch.ovsschema")
SOCKET = RUN / "db.sock"
PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl")


def unable() -> str | None:
    """Why it can't run here; None when it can."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    if missing:
        return f"{', '.join(missing)} not installed (openvswitch-switch)"
    return None if Path("/dev/net/tun").exists() else "no /dev/net/tun"


def vsctl(*words: str) -> str:
    done = subprocess.run(["ovs-vsctl", "--timeout=20", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ovs-vsctl {' '.join(words)}: {done.stderr}"
    return done.stdout.strip()


def ports(bridge: str = "br-int") -> list[str]:
    return vsctl("list-ports", bridge).split()


def external_ids(port: str) -> dict[str, str]:
    """Of its interface."""
    text = vsctl("get", "Interface", port, "external_ids").strip("{}")
    pairs = (item.partition("=") for item in text.split(", ") if item)
    return {name.strip('"'): value.strip('"') for name, _equals, value in pairs}


@contextlib.contextmanager
def database() -> Iterator[None]:
    """ovsdb-server, with what was in it when there was one."""
    RUN.mkdir(exist_ok=True)
    if not DATABASE.exists():
        subprocess.run(["ovsdb-tool", "create", str(DATABASE), str(SCHEMA)], check=True)
    with _daemon("ovsdb-server", str(DATABASE), f"--remote=punix:{SOCKET}", f"--unixctl={RUN}/ovsdb-server.ctl"):
        _wait_for(SOCKET)
        yield


@contextlib.contextmanager
def switch(*bridges: str) -> Iterator[None]:
    """The whole, with bridges."""
    with database():
        vsctl("--no-wait", "init")
        with _daemon("ovs-vswitchd", f"unix:{SOCKET}", f"--unixctl={RUN}/ovs-vswitchd.ctl", "--no-chdir"):
            for bridge in bridges:
                vsctl("--may-exist", "add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev")
            yield


@contextlib.contextmanager
def _daemon(name: str, *arguments: str) -> Iterator[None]:
    with open(RUN / f"{name}.log", "a") as log:
        process = subprocess.Popen([name, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)
        SOCKET.unlink(missing_ok=True) if name == "ovsdb-server" else None


def _wait_for(path: Path, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.05)

"""A sandbox made by ``bin/stack``, as tests use it: its commands, its API, its hosts, and what it leaves behind."""

from __future__ import annotations

import concurrent.futures
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.functional.backends import wait_until
from tests.machine.guest_machine import READY
from tests.machine.live import Live

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bin"))  # bin/ is not a package: what is behind bin/stack is imported from its folder

from stacklib import credentials, databases, demo, identity, novaconf, rooms  # noqa: E402
from stacklib.control import Control  # noqa: E402
from stacklib.credentials import PROJECTS  # noqa: E402
from stacklib.layout import CONTROLLER, PORTS, Layout, load  # noqa: E402
from stacklib.sandbox import group  # noqa: E402
from stacklib.secrets import Secrets  # noqa: E402

UP_S, COMMAND_S, READY_S = 900, 120, 90
NEWEST = "2.104"
INSIDE = ("--mount", "--net", "--uts", "--ipc", "--cgroup", "--pid")
__all__ = ["PORTS", "SSH", "TINY", "TOP", "Footprint", "Live", "Outline", "Sandbox", "demo", "novaconf", "outline",
           "remains"]
TINY = {"name": "t1.nano", "ram": 128, "vcpus": 1, "disk": 1}
SSH = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes", "ConnectTimeout=10")


@dataclass(frozen=True)
class Footprint:
    """What a server has outside the API; ``host`` is empty for one that was never placed."""

    uuid: str
    host: str
    domain: str
    taps: tuple[str, ...]
    macs: tuple[str, ...]
    addresses: tuple[str, ...]


class Sandbox:
    """One of two compute hosts, with its state in ``state``."""

    def __init__(self, state: Path, options: tuple[str, ...] = ()) -> None:
        """``options``: more words for ``bin/stack up``."""
        self.state, self.options = state, options
        self._apis: dict[str, Live] = {}

    # --- bin/stack

    def tool(self, *words: str, seconds: float = COMMAND_S, code: int | None = 0) -> str:
        """Run ``bin/stack WORDS``; what it says. AssertionError when it ends otherwise than with ``code``."""
        done = subprocess.run([str(TOP / "bin" / "stack"), "--state", str(self.state), *words], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False)
        said = done.stdout + done.stderr
        assert code is None or done.returncode == code, f"bin/stack {' '.join(words)}: {done.returncode}\n{said}"
        return said

    def up(self) -> str:
        return self.tool("up", "--sandbox", "--hosts", "2", *self.options, seconds=UP_S)

    def run(self, *argv: str, user: str = "demo", host: str | None = None, code: int | None = 0,
            stdin: str = "", seconds: float = COMMAND_S) -> str:
        """Run a command at the controller, or at a host; its standard output. As ``bin/stack exec`` does, but for the
        third of a second in which that starts."""
        words = ["nsenter", f"--target={self.control.room_pid(host or CONTROLLER)}", *INSIDE, "--", *argv]
        reported = credentials.environment(self.layout, self.secrets, user, host or "")
        own = {name: value for name, value in reported.items() if not name.startswith("PYTHON")}  # users' are not ours
        done = subprocess.run(words, text=True, input=stdin, capture_output=True, timeout=seconds, check=False, env=own)
        assert code is None or done.returncode == code, f"{argv}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def openstack(self, *words: str, user: str = "demo") -> Any:
        return json.loads(self.run("openstack", *words, "-f", "json", user=user))

    def nova(self, *words: str, user: str = "demo") -> str:
        return self.run("nova", *words, user=user)

    # --- as stacklib knows it

    @cached_property
    def layout(self) -> Layout:
        found = load(self.state)
        assert found, f"no stack in {self.state}"
        return found

    @cached_property
    def secrets(self) -> Secrets:
        return Secrets(self.layout.path("secrets.json"))

    @property
    def control(self) -> Control:
        return Control(self.layout)

    @property
    def controller_init(self) -> int:
        """The first process of the controller's room."""
        return self.control.room_pid(CONTROLLER)

    def at_controller(self, work: Any) -> Any:
        return rooms.in_network(self.controller_init, work)

    def dial(self, address: tuple[str, int], seconds: float | None) -> socket.socket:
        return self.at_controller(lambda: socket.create_connection(address, seconds))

    def token(self, user: str) -> str:
        password = self.secrets.password(user)
        return self.at_controller(lambda: identity.token(self.layout, user, PROJECTS[user], password)[0])

    def api(self, user: str = "demo") -> Live:
        """The cloud's ordinary user ``demo``, or ``admin``; the same for a session."""
        if user not in self._apis:
            self._apis[user] = self.login(user)
        return self._apis[user]

    def login(self, user: str = "demo", version: str = NEWEST) -> Live:
        """With a token that nobody has used yet."""
        made = Live(self.layout.url("compute", "/v2.1"), self.token(user), self.dial, version)
        if user == "admin":
            made.defaults = {"flavorRef": self.flavor(made), "imageRef": self.image}
        else:
            made.defaults = self.api("admin").defaults
        return made

    def open_group(self, user: str) -> None:
        """Ping and ssh come in to the servers of the user's project, as `up` says of demo's."""
        api = self.api(user)
        groups = api.ask("GET", "/os-security-groups", 35).json()["security_groups"]
        [group] = [one["id"] for one in groups if one["name"] == "default"]
        for protocol, first, last in demo.OPEN:
            rule = {"parent_group_id": group, "cidr": demo.ALL, "ip_protocol": protocol, "from_port": first,
                    "to_port": last}
            answer = api.ask("POST", "/os-security-group-rules", 35, {"security_group_rule": rule})
            assert answer.status_code == 200, answer.text

    def flavor(self, admin: Live, **fields: Any) -> str:
        """The id of a small flavor, or of one that differs in these fields; made when it is not there."""
        wanted = {**TINY, **fields}
        found = {one["name"]: one["id"] for one in admin.get("/flavors")["flavors"]}
        return found.get(wanted["name"]) or admin.call("POST", "/flavors", {"flavor": wanted}).json()["flavor"]["id"]

    @cached_property
    def image(self) -> str:
        """The id of the image that `up` made."""
        return self.openstack("image", "show", demo.IMAGE)["id"]

    @property
    def hosts(self) -> tuple[str, ...]:
        return self.layout.host_rooms

    def daemon(self, name: str) -> dict[str, Any]:
        return next(one for one in self.control.status()["daemons"] if one["name"] == name)

    def kill(self, name: str) -> None:
        self.control.ask(do="kill", name=name, signal=signal.SIGKILL.value)

    def wait_ready(self, name: str, seconds: float = 60) -> None:
        wait_until(f"{name} is ready", lambda: self.daemon(name)["phase"] == "ready", seconds, 0.1)

    # --- guests

    @property
    def key(self) -> Path:
        """The private key whose public half is demo's keypair ``demo``."""
        return demo.key_file(self.layout)

    def ssh(self, address: str, command: str, code: int | None = 0, key: Path | None = None) -> str:
        """Run a command in a guest, from the controller."""
        options = [word for option in SSH for word in ("-o", option)]
        return self.run("ssh", "-q", "-F", "none", "-i", str(key or self.key), *options, f"root@{address}", command,
                        code=code)

    def ready(self, api: Live, uuid: str) -> dict[str, str]:
        """The facts that a guest prints when it is up. Its console's log begins anew with each start."""
        try:
            lines = wait_until(f"{uuid} answers", lambda: READY.findall(api.console(uuid)), READY_S, 0.3)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{api.console(uuid, 60)}") from None
        return dict(word.split("=", 1) for word in lines[0].split())

    def instances(self, host: str) -> Path:
        return self.layout.instances(host)

    def virsh(self, host: str, *words: str) -> str:
        return self.run("virsh", "-q", *words, host=host)

    def qemu(self, uuid: str) -> int:
        """The pid, as we see it, of a guest's QEMU."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if b"qemu-system" in words[0] and uuid.encode() in words and str(self.state).encode() in path.read_bytes():
                return int(path.parent.name)
        raise AssertionError(f"no QEMU runs for {uuid}")

    # --- what is left

    def footprint(self, uuid: str) -> Footprint:
        shown = self.api("admin").show(uuid)
        host = shown["OS-EXT-SRV-ATTR:host"] or ""
        rows = [row for network in shown["addresses"].values() for row in network]
        xml = self.run("virsh", "-q", "dumpxml", uuid, host=host, code=None) if host else ""
        targets = ET.fromstring(xml or "<none/>").iterfind("devices/interface/target")
        return Footprint(uuid, host, shown["OS-EXT-SRV-ATTR:instance_name"],
                         tuple(target.get("dev", "") for target in targets),
                         tuple(row["OS-EXT-IPS-MAC:mac_addr"] for row in rows), tuple(row["addr"] for row in rows))

    def traces(self, gone: Footprint) -> dict[str, Any]:
        """What there still is of a server, by what it is; empty when nothing is left. Looks at every host."""
        found = {what: rows for what, rows in self._rows(gone).items() if rows}
        for host, reported in zip(self.hosts, self.everywhere("virsh -q list --all --uuid; ip -o link"), strict=True):
            found |= {f"on {host}: {what}": "there" for what in self._on(host, reported, gone)}
        networks = self.layout.nova_state(CONTROLLER) / "networks"
        for path in (networks / "leases.json", networks / f"nova-{self.bridge}.conf"):
            found |= {f"{path.name}: {mac}": "there" for mac in gone.macs if mac in path.read_text()}
        return found

    def _on(self, host: str, reported: str, gone: Footprint) -> Iterator[str]:
        """What a host has of a server; ``told``: its domains and links."""
        state, instances = self.layout.nova_state(host), self.layout.instances(host)
        places = {"instances": instances / gone.uuid, "building": state / "building" / gone.uuid,
                  "put aside": instances / f"{gone.uuid}_resize"}
        yield from (place for place, path in places.items() if path.exists())
        yield from (path.name for path in instances.glob("_base/*.part"))
        yield from (tap for tap in gone.taps if f" {tap}:" in reported)
        if gone.uuid in reported:
            yield "domain"

    def everywhere(self, script: str) -> list[str]:
        """What a shell script says on each host."""
        with concurrent.futures.ThreadPoolExecutor(len(self.hosts)) as pool:
            return list(pool.map(lambda host: self.run("sh", "-c", script, host=host), self.hosts))

    bridge = "br100"

    def wait_traceless(self, gone: Footprint, seconds: float = 20) -> None:
        """Nothing is left of a server, within a bound."""
        until = time.monotonic() + seconds
        while left := self.traces(gone):
            assert time.monotonic() < until, f"left over of {gone}: {left}"
            time.sleep(0.3)

    def remove(self, api: Live, *uuids: str) -> None:
        """Delete servers and see that nothing is left of them."""
        feet = [self.footprint(uuid) for uuid in uuids]
        api.remove(*uuids)
        for foot in feet:
            self.wait_traceless(foot)

    @cached_property
    def stores(self) -> Any:
        """Both databases, over MariaDB's socket."""
        from tests.functional.stores import Stores

        urls, file = {}, self.state / "data" / "mariadb" / "mariadb.sock"
        for section, name in (("api_database", "nova_api"), ("database", "nova")):
            url = databases.url(self.layout, self.secrets, name)
            urls[section] = re.sub(r"@[^/]*/", "@localhost/", url) + f"&unix_socket={file}"
        return Stores(urls)

    def _rows(self, gone: Footprint) -> dict[str, Any]:
        """Rows of live things that name the server, in any table that must forget it."""
        return {what: [row for row in rows if any(gone.uuid in str(cell) for cell in row)]
                for what, rows in self.stores.leftovers().items()}


# --- the whole sandbox's own traces


@dataclass(frozen=True)
class Outline:
    """By what a sandbox could be found after its end: namespaces by inode, its control group's and state's names."""

    namespaces: frozenset[str]
    group: str
    state: str


def outline(sandbox: Sandbox) -> Outline:
    inits = sandbox.control.status()["rooms"].values()
    ours = set(_namespaces("self"))
    found = {name for pid in inits for name in _namespaces(str(pid))} - ours
    return Outline(frozenset(found), group(sandbox.layout), str(sandbox.state))


def remains(of: Outline) -> list[str]:
    """What is left of a sandbox on this machine after ``clean``: processes, namespaces, mounts, groups, files."""
    found = [f"process {pid}: {why}" for pid, why in _processes(of)]
    found += [f"mount {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if of.state in line]
    for mount in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup" in mount:
            found += [f"group {path}" for path in Path(mount.split()[4]).glob(f"**/{of.group}")]
    return found + ([f"files in {of.state}"] if Path(of.state).exists() else [])


def _processes(of: Outline) -> Iterator[tuple[int, str]]:
    for path in Path("/proc").glob("[0-9]*"):
        if int(path.name) == os.getpid():
            continue
        try:
            words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            groups = (path / "cgroup").read_text()
            inside = set(_namespaces(path.name)) & of.namespaces
        except OSError:
            continue
        if of.state in words or of.group in groups or inside:
            yield int(path.name), words.strip() or f"in {inside or groups}"


def _namespaces(pid: str) -> list[str]:
    return [os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("net", "mnt", "uts", "pid")]

"""Resources of a new cloud: a small image, flavors, a key pair, and a demo server that users can log in to."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import glance as image_service
from . import identity, packages, venvs
from .credentials import PROJECTS
from .errors import StackError
from .httpjson import Service
from .layout import CHECKOUT, Layout
from .stack import Stack

IMAGE, SERVER, KEY = "tiny", "demo", "demo"
# name: MB of memory, virtual CPUs, GB of disk
FLAVORS = {
    "m1.tiny": (512, 1, 1),
    "m1.small": (2048, 1, 20),
    "m1.medium": (4096, 2, 40),
    "m1.large": (8192, 4, 80),
    "m1.xlarge": (16384, 8, 160),
}
ALL = "0.0.0.0/0"
OPEN = (("icmp", -1, -1), ("tcp", 22, 22))  # to the demo project's servers, from ALL
READY_LINE = "nova-guest ready:"
ACTIVE_SECONDS, READY_SECONDS = 120, 180
CHUNK = 2**20
WHOLE = -1  # as the number of console lines: all


@dataclass(frozen=True)
class Shown:
    """The demo server, for the summary."""

    state: str
    address: str
    console: tuple[str, ...]  # the last lines of its log
    screen: str  # temporary URL of its console for a browser, or the reason why it has none


# --- the image -------------------------------------------------------------------------------------------------------


def image_file(layout: Layout) -> Path:
    return layout.images / f"{IMAGE}.qcow2"


def fetch_guest(layout: Layout, log: Path) -> str:
    """Fetch the packages that the image is built from, so that `up` needs no network for it."""
    if image_file(layout).exists() or _is_whole(_built_image(layout)):
        return "unchanged"
    begin = log.stat().st_size if log.exists() else 0
    with log.open("ab") as output:
        failed = packages.run([str(_builder()), "--fetch"], output)
    if failed:
        raise _not_fetched(log.read_bytes()[begin:].decode(errors="replace"), log)
    return "fetched"


def _not_fetched(words: str, log: Path) -> StackError:
    """Return the error of build-guest: apt's message if there is one, otherwise build-guest's last line."""
    lines = words.splitlines()
    said = [line for line in lines if line.startswith("build-guest: ")]
    if said and not any(line.startswith("E:") for line in lines):
        return StackError(said[-1], f"fix the cause, or use --no-demo to skip the image; {log} has the full output")
    return packages.not_installed(words, log)


def build_image(stack: Stack) -> str:
    """Copy the guest image, which is built once for all stacks of this machine while its sources do not change."""
    target, built = image_file(stack.layout), _built_image(stack.layout)
    if target.exists():
        return "unchanged"
    words = "copied"
    if not _is_whole(built):
        built.parent.mkdir(exist_ok=True)
        stack.machine_command("image", [str(_builder()), "--output", str(built)], seconds=900)
        words = "built"
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.new")
    shutil.copy(built, unfinished)
    unfinished.rename(target)
    return f"{words}, {target.stat().st_size / 1e6:.0f} MB"


def _builder() -> Path:
    builder = CHECKOUT / "bin" / "build-guest"
    if not builder.exists():
        raise StackError(f"no such file: {builder}", "run bin/stack from a complete checkout, or use --no-demo")
    return builder


def _built_image(layout: Layout) -> Path:
    return layout.venvs / "images" / f"{venvs.digest(_builder().parent, ('build-guest', 'guest'))}.qcow2"


def _is_whole(image: Path) -> bool:
    """Return whether build-guest has completed the image, which it marks by a file next to it."""
    return image.with_name(f".{image.name}.built").exists()


def upload_image(stack: Stack) -> str:
    return stack.at_controller(lambda: _upload(stack))


def _upload(stack: Stack) -> str:
    glance = _service(stack, "glance", "/v2", "admin")
    for image in glance.get(f"/images?name={IMAGE}")["images"]:
        if image["status"] == "active":
            return "unchanged"
        glance.call("DELETE", f"/images/{image['id']}")
    file = image_file(stack.layout)
    if in_ceph := image_service.CEPH in image_service.stores_of(stack.layout):
        file = _as_raw(stack, file)
    body = {
        "name": IMAGE,
        "disk_format": "raw" if in_ceph else "qcow2",
        "container_format": "bare",
        "visibility": "public",
        "min_disk": 1,
        "min_ram": 128,
    }
    image = glance.post("/images", body)
    glance.send("PUT", f"/images/{image['id']}/file", _chunks(file), "application/octet-stream")
    return f"{IMAGE} {image['id']}"


def _as_raw(stack: Stack, file: Path) -> Path:
    """Convert the image to raw, the format that disks in Ceph are cloned from."""
    raw = file.with_suffix(".raw")
    stack.machine_command("image", ["qemu-img", "convert", "-f", "qcow2", "-O", "raw", str(file), str(raw)])
    return raw


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while data := stream.read(CHUNK):
            yield data


# --- flavors, key, server --------------------------------------------------------------------------------------------


def prepare_flavors(stack: Stack) -> str:
    return stack.at_controller(lambda: _flavors(stack))


def _flavors(stack: Stack) -> str:
    nova = _service(stack, "compute", "/v2.1", "admin")
    found = {flavor["name"] for flavor in nova.get("/flavors")["flavors"]}
    missing = [name for name in FLAVORS if name not in found]
    for name in missing:
        memory, vcpus, disk = FLAVORS[name]
        nova.post("/flavors", {"flavor": {"name": name, "ram": memory, "vcpus": vcpus, "disk": disk}})
    return ", ".join(missing) or "unchanged"


def boot(stack: Stack) -> str:
    """Boot the demo server; wait until it is ACTIVE and (with a real hypervisor) prints its ready line."""
    return stack.at_controller(lambda: _boot(stack))


def _boot(stack: Stack) -> str:
    nova = _service(stack, "compute", "/v2.1", "demo")
    _ensure_key(stack.layout, nova)
    _open_group(nova)
    start = time.monotonic()
    server = _find(nova)
    if server and server["status"] == "ERROR":
        nova.call("DELETE", f"/servers/{server['id']}", accept=(404,))
        _wait_gone(nova, server["id"])
        server = None
    if server is None:
        server = nova.post(
            "/servers",
            {
                "server": {
                    "name": SERVER,
                    "imageRef": _id_of(_service(stack, "glance", "/v2", "demo"), "/images", "images", IMAGE),
                    "flavorRef": _id_of(nova, "/flavors", "flavors", "m1.tiny"),
                    "key_name": KEY,
                }
            },
        )["server"]
    elif server["status"] == "SHUTOFF":
        nova.post(f"/servers/{server['id']}/action", {"os-start": None})
    _wait_active(nova, server["id"])
    active = time.monotonic() - start
    if stack.layout.choices.driver == "fake" or stack.layout.choices.neutron == "api":  # guests have no connectivity
        return f"{SERVER} is ACTIVE after {active:.1f} s"
    _wait_ready(nova, server["id"])
    return f"{SERVER} is ACTIVE after {active:.1f} s, ready after {time.monotonic() - start:.1f} s"


def show(stack: Stack) -> Shown | None:
    return stack.at_controller(lambda: _show(stack))


def _show(stack: Stack) -> Shown | None:
    nova = _service(stack, "compute", "/v2.1", "demo")
    server = _find(nova)
    if server is None:
        return None
    addresses = [row["addr"] for rows in server["addresses"].values() for row in rows]
    lines = _console(nova, server["id"]) if server["status"] == "ACTIVE" else []
    screen = _screen(nova, server["id"]) if server["status"] == "ACTIVE" else "none"
    last = tuple(line for line in lines if line.strip())[-6:]
    return Shown(server["status"], ", ".join(addresses) or "none", last, screen)


def key_file(layout: Layout) -> Path:
    return layout.path("demo_key")


def _ensure_key(layout: Layout, nova: Service) -> None:
    path = key_file(layout)
    if not path.exists():
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", KEY, "-f", str(path)],
            check=True,
            stdin=subprocess.DEVNULL,
        )
    public = path.with_suffix(".pub").read_text().strip()
    nova.call("POST", "/os-keypairs", {"keypair": {"name": KEY, "public_key": public}}, accept=(409,))


def _open_group(nova: Service) -> None:
    """Allow ping and ssh to the demo project's servers: on a shared network only security groups protect them."""
    [group] = [one for one in nova.get("/os-security-groups")["security_groups"] if one["name"] == "default"]
    known = {(rule["ip_protocol"], rule["from_port"]) for rule in group["rules"] if rule["ip_range"].get("cidr") == ALL}
    for protocol, first, last in OPEN:
        if (protocol, first) not in known:
            ports = {"ip_protocol": protocol, "from_port": first, "to_port": last}
            rule = {"parent_group_id": group["id"], "cidr": ALL, **ports}
            nova.call("POST", "/os-security-group-rules", {"security_group_rule": rule})


def _service(stack: Stack, port: str, path: str, user: str) -> Service:
    layout = stack.layout
    base = Service({"glance": "glance", "compute": "nova-api"}[port], layout.url(port, path))
    if layout.choices.auth == "noauth2":
        return base.with_headers(X_Auth_Token=f"{user}:{PROJECTS[user]}")
    value, _ = identity.token(layout, user, PROJECTS[user], stack.secrets.password(user))
    return base.with_headers(X_Auth_Token=value)


def _id_of(service: Service, path: str, key: str, name: str) -> str:
    for row in service.get(path)[key]:
        if row["name"] == name:
            return row["id"]
    raise StackError(f"{service.name} has no {key[:-1]} {name}", "run `bin/stack up` again without --no-demo")


def _find(nova: Service) -> dict | None:
    """Return the demo server with its details; the newest if there are several."""
    rows = [row for row in nova.get(f"/servers/detail?name=^{SERVER}$")["servers"] if row["name"] == SERVER]
    return max(rows, key=lambda row: row["created"], default=None)


def _wait_active(nova: Service, server: str) -> None:
    deadline = time.monotonic() + ACTIVE_SECONDS
    while time.monotonic() < deadline:
        row = nova.get(f"/servers/{server}")["server"]
        if row["status"] == "ACTIVE":
            return
        if row["status"] == "ERROR":
            fault = row.get("fault", {}).get("message", "no fault is recorded")
            raise StackError(f"the demo server is in ERROR: {fault}", "see `bin/stack logs nova-conductor`")
        time.sleep(0.25)
    raise StackError(
        f"the demo server is still {row['status']} after {ACTIVE_SECONDS} s",
        "see `bin/stack logs nova-conductor` and those of nova-compute",
    )


def _wait_gone(nova: Service, server: str) -> None:
    deadline = time.monotonic() + ACTIVE_SECONDS
    while nova.call("GET", f"/servers/{server}", accept=(404,)).status != 404:
        if time.monotonic() > deadline:
            raise StackError(
                "the demo server of an earlier run cannot be deleted", "see `bin/stack logs nova-conductor`"
            )
        time.sleep(0.25)


def _console(nova: Service, server: str, lines: int = 60) -> list[str]:
    answer = nova.call(
        "POST", f"/servers/{server}/action", {"os-getConsoleOutput": {"length": lines}}, accept=(404, 409)
    )
    return str(answer.body.get("output", "")).replace("\r", "").splitlines()


def _screen(nova: Service, server: str) -> str:
    try:
        asked = {"os-getVNCConsole": {"type": "novnc"}}
        return nova.post(f"/servers/{server}/action", asked)["console"]["url"]
    except StackError as error:
        return error.message


def _wait_ready(nova: Service, server: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        lines = _console(nova, server, WHOLE)  # a user may have produced many lines since
        if any(READY_LINE in line for line in lines):
            return
        time.sleep(0.5)
    tail = "\n".join(f"  {line}" for line in lines[-10:]) or "  (empty)"
    raise StackError(
        f"the demo server did not print `{READY_LINE}` within {READY_SECONDS} s; the end of its console:\n{tail}",
        "check its address and metadata: `bin/stack logs nova-network`, `bin/stack logs nova-api`",
    )

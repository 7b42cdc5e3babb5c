"""doc/containers.rst, word by word: images from a base that debootstrap made, and what runs in them.

No registry is reached. Where the page speaks of a broker and a database that are there already, those of its last
section serve.
"""

from __future__ import annotations

import re
import time

import docutils.core
import docutils.nodes

from stacklib.layout import CHECKOUT
from tests.fresh.debs import wait_for
from tests.fresh.machine import Machine, Plan

PAGE = CHECKOUT / "doc" / "containers.rst"
BUILD, NO_REGISTRY = "Build the images", "Without a registry"
NOVA_ALL, ONE_DAEMON, COMPOSE = ("A whole cloud in one container", "One daemon per container",
                                 "A control plane with compose")
#: What the tree of the case was made by: see `trees.with_podman`.
MADE_BEFORE = "debootstrap "
BUILD_S, STEP_S = 1500.0, 300.0  # on a machine that others use, too
STORE_MB = 6000
#: podman's store can lie on no overlay, and crun knows no control groups of two kinds at once, as some machines have.
#: Builds are in no namespaces of their own: they have the machine's network, and find an index of packages as it does.
MACHINE = f"""
mkdir -p /var/lib/containers
mount -t tmpfs -o size={STORE_MB}m none /var/lib/containers
printf '[network]\\nnetwork_backend = "netavark"\\n[engine]\\nruntime = "runc"\\n' > /etc/containers/containers.conf
apt-get -q update
"""
PLAN = Plan(env={"BUILDAH_ISOLATION": "chroot"})
#: The neighbours of daemons that run by hand, by the names in their files. podman hands the machine's names to all
#: containers, so they go again.
NEIGHBOURS = """
echo '127.0.0.1 broker database images imageproxy' >> /etc/hosts
mkdir /etc/nova
podman run --rm --network none --user root --volume ./etc/container/cloud:/files:ro --volume /etc/nova:/etc/nova-cloud \
    nova python /files/prepare.py /etc/nova-cloud
podman run --detach --name broker --network host --volume /etc/nova/definitions.json:/etc/rabbitmq/definitions.json:ro \
    nova-broker
podman run --detach --name database --network host --volume /etc/nova/database.sql:/run/secrets/database.sql:ro \
    nova-database
"""
#: Image -> what it may have, in MB, the base included.
SIZES = {"nova": 600, "nova-all": 500}
#: Programs that no image of nova's has.
UNWANTED = ("gcc", "cc", "node", "nodejs", "pip", "make")
CONSOLES = {"novnc": "noVNC", "serial": "terminal.js"}
#: Services of compose.yaml that end by themselves.
ONCE = ("cloud_enroll_1",)


def page(machine: Machine) -> str:
    """The page's sections, in an order in which each finds what it needs."""
    machine.ok(f"set -e\n{MACHINE}", STEP_S)
    begun = time.monotonic()
    follow(machine, "Containers", NO_REGISTRY, BUILD)
    built = time.monotonic() - begun
    sizes = {name: checked_size(machine, name) for name in SIZES}
    whole_cloud(machine)
    services, *cloud = blocks(COMPOSE)
    machine.ok(services, BUILD_S)
    by_hand(machine)
    stopped = composed(machine, cloud)
    told = ", ".join(f"{name} {size} MB" for name, size in sizes.items())
    return f"built in {built:.0f} s: {told}; a server in one container and in many; stopped in {stopped:.0f} s"


# --- the page --------------------------------------------------------------------------------------------------------


def blocks(section: str) -> list[str]:
    """The commands of a section, without those of its subsections: the page has no other literal blocks."""
    tree = docutils.core.publish_doctree(PAGE.read_text(), settings_overrides={"report_level": 5})
    (found,) = (node for node in (tree, *tree.findall(docutils.nodes.section)) if title(node) == section)
    return [f"set -e\n{node.astext()}" for node in found.children if isinstance(node, docutils.nodes.literal_block)
            and not node.astext().startswith(MADE_BEFORE)]


def title(node: docutils.nodes.Element) -> str:
    found = node.next_node(docutils.nodes.title)
    return found.astext() if found else ""


def follow(machine: Machine, *sections: str) -> None:
    for section in sections:
        for block in blocks(section):
            machine.ok(block, BUILD_S)


# --- its sections ----------------------------------------------------------------------------------------------------


def checked_size(machine: Machine, image: str) -> int:
    """In MB. It has none of the programs that would make it larger, and more dangerous."""
    for name in UNWANTED:
        said = machine.run(f"podman run --rm --network none --entrypoint which {image} {name}")
        assert said.status == 1, f"{image} has {name}: {said.last_words}"
    packages = machine.ok(f"podman run --rm --network none --entrypoint dpkg-query {image} -W -f '${{Package}}\\n'")
    assert "perl" not in packages.split()
    size = int(machine.ok(f"podman image inspect -f '{{{{.Size}}}}' {image}")) // 10 ** 6
    assert size <= SIZES[image], f"{image} has {size} MB"
    return size


def whole_cloud(machine: Machine) -> None:
    """nova-all as an ordinary user with a read-only root: a server, and both of its consoles."""
    start, look, stop = blocks(NOVA_ALL)
    machine.ok(start, STEP_S)
    wait_for(machine, "podman logs nova-all", "Ctrl-C ends the cloud")
    said = machine.ok(look)
    assert "not installed" not in said and re.search(r"^  serial +ws://127.0.0.1:6083/?$", said, re.M), said
    assert machine.ok("podman exec nova-all id -u").strip() == "900"
    assert machine.run("podman exec nova-all touch /home/nova/x").status == 1
    client = "eval \"$(podman logs nova-all | grep 'export OS_')\"; python3 tests/fresh/boots.py"
    machine.ok(f"{client} boot vm1")
    for kind, words in CONSOLES.items():
        assert words in machine.ok(f"{client} console vm1 {kind}")
    machine.ok(stop, STEP_S)
    ended_well(machine, "nova-all")


def by_hand(machine: Machine) -> None:
    """A conductor and a scheduler, each in a container with /etc/nova."""
    machine.ok(f"set -e\n{NEIGHBOURS}", STEP_S)
    owners, start, look, stop = blocks(ONE_DAEMON)
    healthy(machine, "broker", "database")
    machine.ok(f"{owners}\n{start}".replace("set -e\n", "", 1), STEP_S)
    healthy(machine, "nova-conductor", "nova-scheduler")
    machine.ok(look)
    users = {name: machine.ok(f"podman exec {name} id -un").strip() for name in ("nova-conductor", "nova-scheduler")}
    assert users == {"nova-conductor": "nova-conductor", "nova-scheduler": "nova"}
    machine.ok("podman stop broker", STEP_S)
    wait_for(machine, "podman exec nova-scheduler nova-status health", "nova-scheduler is not ready: bus: ")
    machine.ok(stop, STEP_S)
    ended_well(machine, "nova-conductor", "nova-scheduler")
    machine.ok("podman rm --force broker database nova-conductor nova-scheduler; rm -r /etc/nova", STEP_S)
    machine.ok("sed -i '/ broker /d' /etc/hosts")


def composed(machine: Machine, commands: list[str]) -> float:
    """A server on the pretended host; the cloud goes on after a stop. How many seconds that took, for all of it."""
    prepare, up, boot, show, again, remove = commands
    machine.ok(f"{prepare}\n{up}", STEP_S)
    names = machine.ok("podman ps --all --format '{{.Names}}'").split()
    services = [name for name in names if name.startswith("cloud_") and name not in ONCE]
    assert len(services) == 12, services
    healthy(machine, *services)
    machine.ok(boot, STEP_S)
    wait_for(machine, show, '"status": ?"ACTIVE"')
    assert "10.11.12." in machine.ok(show)
    stop, _, start = again.rpartition("\n")
    seconds = machine.run(stop, STEP_S).seconds
    ended_well(machine, *services)
    machine.ok(start, STEP_S)
    healthy(machine, *services)
    assert re.search('"status": ?"ACTIVE"', machine.ok(show))
    machine.ok(remove, STEP_S)
    assert not [name for name in machine.ok("podman ps --all --format '{{.Names}}'").split() if "cloud_" in name]
    return seconds


# --- what holds of each container ------------------------------------------------------------------------------------


def healthy(machine: Machine, *names: str) -> None:
    """By the health checks of their images."""
    for name in names:
        wait_for(machine, f"podman healthcheck run {name} && echo well", r"\bwell\b")


def ended_well(machine: Machine, *names: str) -> None:
    """By themselves, within their grace: 137 would be a kill."""
    for name in names:
        status = machine.ok(f"podman inspect -f '{{{{.State.ExitCode}}}}' {name}").strip()
        assert status == "0", f"{name}: {status}\n{machine.run(f'podman logs {name}').last_words}"

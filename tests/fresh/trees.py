"""How far a machine has got before its case begins: nothing, the packages, or all that ``bin/stack install`` makes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.fresh import layers
from tests.fresh.machine import Machine, Plan

INSTALL_S = 1500
PLAIN = Plan()
NOVA_ALL = "bin/nova-all"
SLIM_TREE = "srv/bookworm"  # where doc/containers.rst has it
ORDINARY = Plan(home=layers.FOR_ALL, user=layers.USERS[0], pip_cache=True)  # as an ordinary user
PACKAGES = """python3 -c "
import sys; sys.path.insert(0, 'bin'); sys.dont_write_bytecode = True
from pathlib import Path
from stacklib import packages
print(packages.install({parts}, Path('/var/log/fresh-packages.log')))
" """


def bare(suite: str = layers.BOOKWORM) -> layers.Made:
    """A Debian with what the README asks an ordinary user for, and a checkout that users may read."""
    return (*layers.checkout(layers.FOR_ALL), *layers.base(layers.BARE, suite))


def with_nova_all() -> layers.Made:
    """The same after the first start of nova-all by the first of its users."""
    def write(target: Path) -> None:
        with Machine(bare(), ORDINARY, upper=target) as machine:
            machine.run(f"{NOVA_ALL} --port 0 --end-with-stdin < /dev/null", INSTALL_S)
            machine.ok("ls ~/.cache/nova-all/*.whole")

    written = layers.written("nova-all", layers.nova_all_key(), layers.base(layers.BARE), write)
    return (*layers.checkout(layers.FOR_ALL), *written)


def with_podman() -> layers.Made:
    """Debian with podman, a checkout, and the tree that an image of Debian is made of."""
    def write(target: Path) -> None:
        with Machine(nothing(), Plan(), upper=target) as machine:
            machine.ok(PACKAGES.format(parts=repr(("containers",))), INSTALL_S)
        (target / SLIM_TREE).parent.mkdir(exist_ok=True)
        for slim in layers.base(layers.SLIM):
            subprocess.run(["cp", "-a", str(slim), str(target / SLIM_TREE)], check=True)

    return (*layers.checkout(), *layers.written("containers", layers.containers_key(), layers.base(), write))


def borrowed() -> layers.Made:
    """This machine's own tree, with what is installed in it: made in no time. Its disk has to be of memory."""
    return (*layers.checkout(), Path("/"))


def nothing(suite: str = layers.BOOKWORM) -> layers.Made:
    """Debian, and a checkout."""
    return (*layers.checkout(), *layers.base(suite=suite))


def with_release_before(suite: str = layers.BOOKWORM, home: str = layers.BEFORE) -> layers.Made:
    """Debian, a checkout, and the release before in a checkout of its own at ``home``."""
    return (*layers.release_before(home), *nothing(suite))


def bare_with_release_before() -> layers.Made:
    """The same, as :func:`bare` has it."""
    return (*layers.release_before(layers.BEFORE_FOR_ALL), *bare())


def with_packages(suite: str = layers.BOOKWORM) -> layers.Made:
    command = PACKAGES.format(parts=repr(layers.PARTS))
    return (*layers.checkout(), *_made("packages", suite, layers.packages_key(), layers.base(suite=suite), command))


INSTALL = f"bin/stack install --parts {','.join(layers.PARTS)}"


def environments(suite: str = layers.BOOKWORM) -> layers.Made:
    """All of Python's environments; our own package in one of them may be of an older checkout."""
    below = with_packages(suite)[1:]
    return (*layers.checkout(), *_made("environments", suite, layers.environments_key(), below, INSTALL))


def beside_the_release_before() -> layers.Made:
    """The same, and the release before in a checkout of its own."""
    return (*layers.release_before(), *environments())


def installed(suite: str = layers.BOOKWORM) -> layers.Made:
    """The same, our own package as the checkout has it: ``up`` fetches nothing."""
    return (*layers.checkout(), *_made("current", suite, layers.sources_key(), environments(suite)[1:], INSTALL))


#: What clouds have before anybody installs nova, and what runs guests.
NEIGHBOURS = ("broker", "databases", "nextdoor", "clients", "hypervisor")
NEIGHBOURS_AT = "/srv/neighbours"


def with_neighbours(suite: str = layers.BOOKWORM) -> layers.Made:
    """Debian with RabbitMQ, MariaDB, memcached, Keystone, Glance, libvirt, and nothing of nova's; a checkout."""
    below = layers.base(suite=suite)
    command = (f"bin/stack install --parts {','.join(NEIGHBOURS)} && bin/stack --state {NEIGHBOURS_AT} up "
               f"--neighbours-only --driver fake --no-demo && bin/stack --state {NEIGHBOURS_AT} down")
    return (*layers.checkout(), *_made("neighbours", suite, layers.neighbours_key(NEIGHBOURS), below, command))


def prepared(name: str, command: str, below: layers.Made | None = None) -> layers.Made:
    """A machine with neighbours, or one made of it, after what comes before a deployment tool: its packages, those of
    its images, its users. Another command is another tree."""
    under = (below or with_neighbours())[1:]
    return (*layers.checkout(), *_made(name, layers.BOOKWORM, command, under, command, Plan(pip_cache=True)))


def _made(name: str, suite: str, key: str, below: layers.Made, command: str, plan: Plan = PLAIN) -> layers.Made:
    def write(target: Path) -> None:
        with Machine((*layers.checkout(), *below), plan, upper=target) as machine:
            machine.ok(command, INSTALL_S)

    return layers.written(layers.of_suite(name, suite), key, below, write)

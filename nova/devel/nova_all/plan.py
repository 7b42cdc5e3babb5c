"""The command line of ``nova-all``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nova.version import RELEASE

ABOUT = """\
A whole cloud in one process, for whoever writes or tries clients of the Compute API: nova-api, nova-conductor,
nova-scheduler, the Placement API, metadata, consoles, certificates and compute hosts. It needs no root, no broker, no
database server, no Keystone and no Glance. It is for development: its Keystone, Glance and Neutron are small fakes.
"""

EPILOG = """\
examples:
  nova-all                               a cloud on port 8774, until Ctrl-C; nothing of it is left
  nova-all --port 0 --clouds-file c.yaml a free port; the file is for OS_CLIENT_CONFIG_FILE
  nova-all --state DIR                   the cloud lives on in DIR, also after a kill -9
  nova-all --demo --hosts 5              with projects, flavors, networks, images and servers to look at
  nova-all --networking neutron          with Neutron's API beside, for Horizon, Terraform and Ansible
  nova-all --driver libvirt --image F    servers are guests of your own libvirt (qemu:///session), without root
  nova-all --config-file F               options of a nova.conf, above those that nova-all chooses, such as
                                         [keystone_authtoken] and [glance] of real services

faults on demand, for tests of clients: the header X-Nova-All-Fail, or POST to /nova-all/faults (doc/nova-all.rst).
"""

FAKE, LIBVIRT = "fake", "libvirt"
NOVA, NEUTRON = "nova", "neutron"
PASSWORD = "NOVA_ALL_PASSWORD"  # of the environment, which other users cannot read


@dataclass(frozen=True)
class Plan:
    """What the cloud shall be like. ``state`` None: it goes with the process. ``seed`` None: ids are random.
    ``speed``: of fake guests; 0 is at once, 1 as long as real ones take."""

    hosts: int
    listen: str
    port: int
    console_port: int
    serial_port: int
    s3_port: int
    state: Path | None
    clouds_file: Path | None
    demo: bool
    seed: int | None
    speed: float
    driver: str
    networking: str
    image: Path | None
    password: str | None
    config_files: tuple[str, ...]
    debug: bool
    verbose: bool
    end_with_stdin: bool

    @property
    def host_names(self) -> tuple[str, ...]:
        """Of the compute hosts."""
        return tuple(f"host{number}" for number in range(1, self.hosts + 1))


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    made = argparse.ArgumentParser("nova-all", description=ABOUT, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--version", action="version", version=RELEASE)
    add = made.add_argument
    add("--hosts", type=_at_least(1), default=2, metavar="N", help="compute hosts (default: 2; 1 with libvirt)")
    add("--listen", default="127.0.0.1", metavar="ADDRESS",
        help="address of all ports (default: 127.0.0.1, this machine alone). Who reaches it can log in with the "
             "password that is printed")
    add("--port", type=_port, default=8774, metavar="N",
        help="port of all APIs: compute at /, /identity, /image, /placement, /network (default: 8774; 0: a "
             "free one)")
    add("--console-port", type=_port, default=0, metavar="N", help="port of noVNC (default: a free one)")
    add("--serial-port", type=_port, default=0, metavar="N", help="port of serial consoles (default: a free one)")
    add("--s3-port", type=_port, default=0, metavar="N", help="port of the object store, S3 (default: a free one)")
    add("--state", type=Path, metavar="DIR", help="keep the cloud here; without it nothing is left at the end")
    add("--clouds-file", type=_new_file, metavar="FILE",
        help="write a clouds.yaml for OS_CLIENT_CONFIG_FILE, with the clouds nova-all and nova-all-admin (mode 0600)")
    add("--password", metavar="WORD",
        help="of the users admin and demo (default: made up, and printed). Other users of this machine can see it in "
             f"the list of processes: rather use --password-file, or {PASSWORD} in the environment")
    add("--password-file", type=_readable, metavar="FILE", help="a file whose first line is that password")
    add("--demo", action="store_true", help="furnish it: more projects, flavors, networks, images, and servers")
    add("--seed", type=int, metavar="N", help="the same ids and the same order each time")
    add("--speed", type=_factor, default=0.0, metavar="X",
        help="how slow fake guests are: 0 at once (default), 1 as real ones, with seconds for a boot or a reboot")
    add("--driver", choices=(FAKE, LIBVIRT), default=FAKE, help="what the hosts' guests are (default: fake)")
    add("--networking", choices=(NOVA, NEUTRON), default=NOVA,
        help="whose the networks are: nova-network's (default), or those of a small fake of Neutron, for clients that "
             "need Neutron's API")
    add("--image", type=_readable, metavar="FILE", help="a disk image in qcow2 to begin with, for --driver libvirt")
    add("--config-file", action="append", default=[], metavar="FILE", help="more of a nova.conf; may be repeated")
    add("--end-with-stdin", action="store_true", help="end when standard input is closed: with whoever started it")
    add("--verbose", "-v", action="store_true", help="log lines on standard error, too")
    add("--debug", "-d", action="store_true", help="log what helps developers")
    return made


def parse(words: Sequence[str]) -> Plan:
    """The plan that the command line says. Exits with 2 and a sentence where it is wrong."""
    made = parser()
    given = made.parse_args(list(words))
    if given.driver == LIBVIRT:
        if given.networking == NEUTRON:
            made.error("--networking neutron is for fake guests: with --driver libvirt each guest has a network of "
                       "QEMU's own")
        given.hosts = 1  # the user has one libvirt
    given.password = _password(made, given)
    given.config_files = tuple(given.__dict__.pop("config_file"))
    return Plan(**vars(given))


def _password(made: argparse.ArgumentParser, given: argparse.Namespace) -> str | None:
    """What was said of it in one of three places; None: in none."""
    file: Path | None = given.__dict__.pop("password_file")
    if given.password is not None and file is not None:
        made.error("--password and --password-file both name a password: leave one out")
    if file is None:
        return given.password or os.environ.get(PASSWORD) or None
    word = file.read_text(errors="replace").partition("\n")[0].strip()
    if not word:
        made.error(f"--password-file {file} has no password in its first line")
    return word


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value
    number.__name__ = "number"  # argparse says it: invalid number value
    return number


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{value} is not between 0 and 65535")
    return value


def _readable(text: str) -> Path:
    if not (os.path.isfile(text) and os.access(text, os.R_OK)):
        raise argparse.ArgumentTypeError(f"{text} is no file that you can read")
    return Path(text)


def _new_file(text: str) -> Path:
    path = Path(text)
    if os.path.isdir(path) or not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written: name a file in a folder of yours that exists")
    return path


def _factor(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 100")
    return value

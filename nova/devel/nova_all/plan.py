"""Command line of ``nova-all``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nova.version import RELEASE

ABOUT = """\
A whole cloud in one process, for developing and testing clients of the Compute API: nova-api, nova-conductor,
nova-scheduler, the Placement API, metadata, consoles, certificates and compute hosts. It requires no root, broker,
database server, Keystone or Glance. It is for development: its Keystone, Glance and Neutron are small fakes.
"""

EPILOG = """\
examples:
  nova-all                               a cloud on port 8774, removed at Ctrl-C
  nova-all --port 0 --clouds-file c.yaml a free port; the file is for OS_CLIENT_CONFIG_FILE
  nova-all --state DIR                   keep the cloud in DIR, even after a kill -9
  nova-all --demo --hosts 5              with sample projects, flavors, networks, images, servers
  nova-all --networking neutron          with Neutron's API as well, for Horizon, Terraform and Ansible
  nova-all --driver libvirt --image F    run servers in your own libvirt (qemu:///session), without root
  nova-all --config-file F               options of a nova.conf, which override nova-all's, such as
                                         [keystone_authtoken] and [glance] of real services

fault injection, for tests of clients: the header X-Nova-All-Fail, or POST to /nova-all/faults (doc/nova-all.rst).
"""

FAKE, LIBVIRT = "fake", "libvirt"
NOVA, NEUTRON = "nova", "neutron"
PASSWORD = "NOVA_ALL_PASSWORD"  # environment variable, which other users cannot read


@dataclass(frozen=True)
class Plan:
    """Settings of the cloud. ``state`` None: it is deleted with the process. ``seed`` None: ids are random. ``speed``:
    delay of fake guests; 0 is none, 1 as long as real ones take."""

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
        """Names of the compute hosts."""
        return tuple(f"host{number}" for number in range(1, self.hosts + 1))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser("nova-all", description=ABOUT, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--version", action="version", version=RELEASE)
    add = made.add_argument
    add("--hosts", type=_at_least(1), default=2, metavar="N", help="compute hosts (default: 2; 1 with libvirt)")
    add("--listen", default="127.0.0.1", metavar="ADDRESS",
        help="address of all ports (default: 127.0.0.1, this machine only). Anyone who can reach it can log in with "
             "the printed password")
    add("--port", type=_port, default=8774, metavar="N",
        help="port of all APIs: compute at /, /identity, /image, /placement, /network (default: 8774; 0: any "
             "free port)")
    add("--console-port", type=_port, default=0, metavar="N", help="port of noVNC (default: any free port)")
    add("--serial-port", type=_port, default=0, metavar="N", help="port of serial consoles (default: any free port)")
    add("--s3-port", type=_port, default=0, metavar="N", help="port of the object store, S3 (default: any free port)")
    add("--state", type=Path, metavar="DIR", help="keep the cloud in this directory (default: remove it at the end)")
    add("--clouds-file", type=_new_file, metavar="FILE",
        help="write a clouds.yaml for OS_CLIENT_CONFIG_FILE, with the clouds nova-all and nova-all-admin (mode 0600)")
    add("--password", metavar="WORD",
        help="password of the users admin and demo (default: generated and printed). Other users of this machine can "
             f"see it in the process list: prefer --password-file, or {PASSWORD} in the environment")
    add("--password-file", type=_readable, metavar="FILE", help="a file whose first line is the password")
    add("--demo", action="store_true", help="create sample projects, flavors, networks, images and servers")
    add("--seed", type=int, metavar="N", help="generate the same ids in the same order at each start")
    add("--speed", type=_factor, default=0.0, metavar="X",
        help="delay of fake guests: 0 for none (default), 1 as long as real guests, with seconds per boot")
    add("--driver", choices=(FAKE, LIBVIRT), default=FAKE, help="virtualization driver of the hosts (default: fake)")
    add("--networking", choices=(NOVA, NEUTRON), default=NOVA,
        help="network service: nova-network (default), or a small fake of Neutron, for clients that "
             "require Neutron's API")
    add("--image", type=_readable, metavar="FILE", help="initial image, a qcow2 file, for --driver libvirt")
    add("--config-file", action="append", default=[], metavar="FILE", help="additional nova.conf file; may be repeated")
    add("--end-with-stdin", action="store_true",
        help="stop when standard input is closed, as when the parent process ends")
    add("--verbose", "-v", action="store_true", help="also log to standard error")
    add("--debug", "-d", action="store_true", help="log debug messages")
    return made


def parse(words: Sequence[str]) -> Plan:
    """Return the plan of a command line. Exits with status 2 and a message if it is invalid."""
    made = parser()
    given = made.parse_args(list(words))
    if given.driver == LIBVIRT:
        if given.networking == NEUTRON:
            made.error("--networking neutron requires fake guests: with --driver libvirt each guest uses a network of "
                       "QEMU's own")
        given.hosts = 1  # a user has one libvirt
    given.password = _password(made, given)
    given.config_files = tuple(given.__dict__.pop("config_file"))
    return Plan(**vars(given))


def _password(made: argparse.ArgumentParser, given: argparse.Namespace) -> str | None:
    """Return the password from one of three places; None if it is not set."""
    file: Path | None = given.__dict__.pop("password_file")
    if given.password is not None and file is not None:
        made.error("--password and --password-file cannot be combined")
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
    number.__name__ = "number"  # argparse prints it: invalid number value
    return number


def _port(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"{value} is not between 0 and 65535")
    return value


def _readable(text: str) -> Path:
    if not (os.path.isfile(text) and os.access(text, os.R_OK)):
        raise argparse.ArgumentTypeError(f"{text} is not a readable file")
    return Path(text)


def _new_file(text: str) -> Path:
    path = Path(text)
    if os.path.isdir(path) or not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written: give a file in an existing, writable directory")
    return path


def _factor(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 100")
    return value

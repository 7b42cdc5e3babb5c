"""Debian's own packaging of nova around our programs: its maintainer scripts, units, init scripts, sudoers, logrotate
and uWSGI's files, fetched from the archive while the test runs. Of its packages nothing else is unpacked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from nova.version import RELEASE
from stacklib import venvs
from stacklib.layout import CHECKOUT
from tests.fresh import layers, trees
from tests.fresh.machine import Machine, Plan
from tests.installers.site import Site

APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Options::=--force-confold"
#: Machines share a folder of packages, and its lock: this one is not to wait for others.
ARCHIVES = "/var/cache/own-archives"
APT_S, BUILD_S = 1200.0, 900.0
OURS, THEIRS, BETWEEN = "/root/ours", "/root/theirs", "/root/between"
#: Debian's epoch, so that our own packages are an upgrade of these.
VERSION, NEXT = f"2:{RELEASE}-1", f"2:{RELEASE}-2"
SCRIPTS = "preinst postinst prerm postrm config templates triggers"
FILES = r"^\./((usr/)?lib/systemd/.*[^/]|etc/(init|sudoers|logrotate)\.d/.*[^/]|etc/nova/[a-z-]*uwsgi\.ini)$"
#: What our packages have in the place of Debian's: units, users and folders, rotation, the conductor's own file, and
#: what Debian has in another package.
REPLACED = ("usr/lib/systemd/system usr/lib/sysusers.d usr/lib/tmpfiles.d etc/logrotate.d etc/nova/nova.conf "
            "etc/nova/nova-conductor.conf etc/nova/api-paste.ini etc/nova/rootwrap.d usr/bin/nova-*-wsgi")
#: What bin/build-debs takes, and what Debian's packages depend on.
BUILDING = "gcc libc6-dev libvirt-dev pkg-config python3-dev python3-venv"
NEEDED = ("adduser dbconfig-common dbconfig-mysql debconf init-system-helpers lsb-base sudo uwsgi-plugin-python3 "
          "q-text-as-data logrotate dpkg-dev")


@dataclass(frozen=True)
class Mixed:
    """Debian's package ``name``, with its scripts and units, and the programs of our ``ours``.

    ``files``: what Debian's would bring from Nova's own tree. ``programs``: more of ours that it has.
    ``depends``: on a package of Debian's beside what ours depends on."""

    name: str
    ours: str
    files: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()
    depends: str = ""


def tree() -> layers.Made:
    """Debian with what stands around nova, and our packages in ``OURS``: they are built once for all scenarios."""
    def write(target: Path) -> None:
        with Machine(trees.with_neighbours(), Plan(pip_cache=True), upper=target) as machine:
            machine.ok(f"""mkdir -p {ARCHIVES}/partial &&
                echo 'Dir::Cache::Archives "{ARCHIVES}";' > /etc/apt/apt.conf.d/90own-archives &&
                {APT} update && {APT} install {BUILDING}""", APT_S)
            machine.ok(f"bin/build-debs --output {OURS}", BUILD_S)

    key = venvs.digest(CHECKOUT, (*venvs.SOURCES, "bin/deblib"))
    return (*layers.checkout(), *layers.written("own-debs", key, trees.with_neighbours()[1:], write))


def fetch(site: Site, names: tuple[str, ...]) -> None:
    """Into a folder for each: ``control`` and ``files``."""
    machine = site.machine
    machine.ok(f"{APT} update && {APT} install {NEEDED}", APT_S)
    machine.ok(f"mkdir -p {THEIRS} && cd {THEIRS} && apt-get -q download {' '.join(names)}", APT_S)
    for name in names:
        machine.ok(f"""cd {THEIRS} && mkdir -p {name}/files && dpkg-deb -e {name}_*.deb {name}/control &&
            wanted=$(dpkg-deb --fsys-tarfile {name}_*.deb | tar -t | grep -E '{FILES}') || :
            test -z "$wanted" || dpkg-deb --fsys-tarfile {name}_*.deb | tar -x -C {name}/files $wanted""")


def apt_install(site: Site, files: str) -> str:
    """What apt says; dpkg speaks to a terminal of apt's."""
    return site.machine.ok(f"{APT} install {files}", APT_S).replace("\r", "")


def mix(site: Site, mixed: Mixed) -> None:
    """Debian's packaging around our programs."""
    machine, tree, theirs = site.machine, f"{BETWEEN}/{mixed.name}", f"{THEIRS}/{mixed.name}"
    machine.ok(f"""mkdir -p {BETWEEN} && dpkg-deb -R {OURS}/{mixed.ours}_*.deb {tree} && cd {tree} &&
        rm -rf {REPLACED} && (cd DEBIAN && rm -f {SCRIPTS} conffiles) &&
        for one in {SCRIPTS}; do test ! -e {theirs}/control/$one || cp {theirs}/control/$one DEBIAN/; done &&
        cp -a {theirs}/files/. . &&
        for one in {' '.join(mixed.programs)}; do ln -sfn ../lib/nova/bin/$one usr/bin/$one; done &&
        sed -i 's/10:{RELEASE}-1/{VERSION}/; s/ nova-privileged,//; s/^Package: .*/Package: {mixed.name}/
            s/^Depends: /&{mixed.depends}/; /^Provides: \\|^Conflicts: \\|^Replaces: /d' DEBIAN/control""", 120)
    for path, text in mixed.files.items():
        site.write(f"{tree}/{path}", text)
    machine.ok(f"""cd {tree} && (test ! -d etc || find etc -type f -printf '/%p\\n') > DEBIAN/conffiles &&
        dpkg-deb --root-owner-group -Znone --build . {BETWEEN}/{mixed.name}.deb""", 120)


def make(site: Site, name: str, fields: str, files: Mapping[str, str] = MappingProxyType({})) -> None:
    """A package of Debian's that has no program: its scripts, and these files."""
    tree = f"{BETWEEN}/{name}"
    site.write(f"{tree}/DEBIAN/control", f"Package: {name}\nVersion: {VERSION}\nArchitecture: all\n"
               f"Maintainer: nobody <nobody@localhost>\n{fields}Description: {name}\n")
    for path, text in files.items():
        site.write(f"{tree}/{path}", text)
    site.machine.ok(f"""cd {tree} && for one in {SCRIPTS}; do test ! -e {THEIRS}/{name}/control/$one ||
            cp {THEIRS}/{name}/control/$one DEBIAN/; done &&
        (test ! -d etc || find etc -type f -printf '/%p\\n') > DEBIAN/conffiles &&
        dpkg-deb --root-owner-group -Znone --build . {BETWEEN}/{name}.deb""")


def revised(site: Site) -> None:
    """All of these packages, with a newer version."""
    site.machine.ok(f"""cd {BETWEEN} && for one in */; do sed -i 's/{VERSION}/{NEXT}/' $one/DEBIAN/control &&
        dpkg-deb --root-owner-group -Znone --build $one ${{one%/}}.deb; done""", APT_S)

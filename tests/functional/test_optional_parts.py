"""Optional parts are absent in turn, and all at once: imports, files and programs. Every daemon starts all the same."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nova.devel.running import RunningCloud
from tests import sampling
from tests.functional.backends import free_port
from tests.functional.cloud import Cloud, Plan
from tests.functional.daemons import TOP, Daemon
from tests.functional.nova_all import Compute

#: Of extras of setup.cfg, and of what single features alone use.
MODULES = ("ldap3", "libvirt", "opentelemetry", "os_brick", "os_vif", "pyroute2", "vif_plug_ovs")
#: Of Debian's packages, and of machines; with what the summary says then.
FOLDERS = {"/usr/share/novnc": "novnc", "/usr/share/spice-html5": "", "/usr/share/javascript": "",
           "/usr/share/nodejs": "plain terminal", "/usr/share/javascript /usr/share/nodejs": "plain terminal",
           "/dev/shm": ""}
PROGRAMS = ("arping", "bwrap", "conntrack", "dnsmasq", "genisoimage", "iptables", "ip", "npm", "ovs-vsctl", "qemu-img",
            "radvd", "sysctl", "xorriso")
#: Read by each Python that has it on its path: these modules cannot be imported.
BLOCKS = """
import os, sys

class Absent:
    names = frozenset(os.environ["NOVA_ABSENT_MODULES"].split())

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
PROXIES = {"novncproxy": ("vnc", "novncproxy"), "serialproxy": ("serial_console", "serialproxy"),
           "spicehtml5proxy": ("spice", "html5proxy"), "xvpvncproxy": ("vnc", "xvpvncproxy")}

pytestmark = pytest.mark.in_turn(3, 5)


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blocks")
    (folder / "sitecustomize.py").write_text(BLOCKS)
    return folder


def without_modules(blocked: Path, *names: str) -> dict[str, str]:
    return {"PYTHONPATH": f"{blocked}:{TOP}", "NOVA_ABSENT_MODULES": " ".join(names)}


def boots(cloud: RunningCloud) -> None:
    demo = Compute(cloud)
    assert demo.settled(demo.create("vm1"), "ACTIVE")


@pytest.mark.parametrize("name", sampling.drawn(MODULES, 2, 5))
def test_nova_all_when_an_optional_module_is_absent_then_it_boots_a_server(name: str, blocked: Path, monkeypatch
                                                                          ) -> None:
    for variable, value in without_modules(blocked, name).items():
        monkeypatch.setenv(variable, value)
    with RunningCloud(hosts=1) as cloud:
        boots(cloud)


@pytest.mark.parametrize("names", sampling.drawn(tuple(FOLDERS), 2, 5))
def test_nova_all_when_optional_files_are_absent_then_it_boots_a_server_and_a_line_says_so(names: str, monkeypatch
                                                                                          ) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nobody")  # nor can npm put anything there
    if os.getuid() or not shutil.which("unshare"):
        pytest.skip("needs root, for a mount namespace")
    hides = "; ".join(f"mkdir -p {name}; mount -t tmpfs -o size=0,ro none {name}" for name in names.split())
    program = ("unshare", "--mount", "sh", "-c", f'{hides}; exec "$@"', "sh", sys.executable, "-m", "nova.cmd.all")
    with RunningCloud(hosts=1, program=program) as cloud:
        boots(cloud)
        said = cloud.said
    assert ("Optional parts" in said) == bool(FOLDERS[names]) and FOLDERS[names] in said


@pytest.mark.parametrize("absent", sampling.drawn((*PROGRAMS, ""), 3, 5))
def test_nova_all_when_an_optional_program_is_absent_then_it_boots_a_server(absent: str, tmp_path: Path, monkeypatch
                                                                           ) -> None:
    """Empty: all programs are absent."""
    if absent:
        for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
            for program in Path(folder).iterdir():
                if program.name != absent and not (tmp_path / program.name).exists():
                    (tmp_path / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path))
    with RunningCloud(hosts=1) as cloud:
        boots(cloud)


@pytest.fixture(scope="module")
def cloud(make_cloud: Callable[[Plan], Cloud], blocked: Path, tmp_path_factory: pytest.TempPathFactory) -> Cloud:
    options: dict[str, dict[str, object]] = {}
    for section, option in PROXIES.values():
        options.setdefault(section, {}).update({f"{option}_host": "127.0.0.1", f"{option}_port": free_port()})
    env = {**without_modules(blocked, *MODULES), "PATH": str(tmp_path_factory.mktemp("empty"))}
    return make_cloud(Plan(consoles=True, certs=True, placement=True, upstream=False, options=options, env=env)).start()


@pytest.fixture
def proxies(cloud: Cloud) -> Iterator[dict[str, Daemon]]:
    config = cloud.root / "etc" / "ctl" / "nova.conf"
    made = {name: Daemon(name, config, cloud.root / "log" / f"{name}.log", cloud.plan.env).start() for name in PROXIES}
    yield made
    for daemon in made.values():
        daemon.kill()


def test_daemons_when_all_optional_modules_and_programs_are_absent_then_each_starts(cloud: Cloud,
                                                                                   proxies: dict[str, Daemon]) -> None:
    assert cloud.api().boot("vm1")
    for daemon in proxies.values():
        daemon.ready()
    assert all(daemon.running for daemon in cloud.daemons.values())

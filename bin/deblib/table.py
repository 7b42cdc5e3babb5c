"""The packages: the contents of each, and its dependencies on Debian packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from stacklib.layout import CHECKOUT

COMMON = "nova-common"
EXAMPLES = "usr/share/nova"  # of the files that administrators edit
#: Build dependencies besides dpkg-deb: libvirt-python has no binary wheel.
BUILDING = ("gcc", "libc6-dev", "libvirt-dev", "pkg-config", "python3-dev", "python3-venv")


class Config(NamedTuple):
    """A file of /etc/nova that the first installation creates from an example. It is not a conffile: a release that
    changes the example does not prompt the administrator."""

    name: str
    mode: int
    owner: str
    group: str


@dataclass(frozen=True, kw_only=True)
class Package:
    """One package. ``programs`` are links in /usr/bin to the environment's, each with a man page if it has one.

    ``files``: path in the checkout -> path in the package. A file of /etc is a conffile. ``unit``: whether it is a
    daemon with a unit of its name. ``provides``: its names in other distributions. ``replaces``: Debian packages that
    have some of its files; ``drops``: files of theirs that conflict with its own. ``conflicts``: packages that cannot
    be installed at the same time. ``binary``: whether it has compiled files and is for one architecture.
    """

    name: str
    summary: str
    programs: tuple[str, ...]
    depends: tuple[str, ...] = ()
    recommends: tuple[str, ...] = ()
    suggests: tuple[str, ...] = ()
    config: Config | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    provides: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    unit: bool = True
    binary: bool = False

    @property
    def users(self) -> tuple[str, ...]:
        """Names of its sysusers.d files."""
        return self._of_systemd("sysusers.d")

    @property
    def folders(self) -> tuple[str, ...]:
        """Names of its tmpfiles.d files."""
        return self._of_systemd("tmpfiles.d")

    def _of_systemd(self, folder: str) -> tuple[str, ...]:
        return tuple(Path(name).name for name in self.files.values() if name.startswith(f"usr/lib/{folder}/"))

    @property
    def modules(self) -> bool:
        """True if the package makes the kernel load modules."""
        return any(name.startswith("usr/lib/modules-load.d/") for name in self.files.values())


def _users(name: str) -> dict[str, str]:
    """Return the files that create a package's user and its folders."""
    paths = (f"{folder}/{name}.conf" for folder in ("sysusers.d", "tmpfiles.d"))
    return {f"etc/{path}": f"usr/lib/{path}" for path in paths if (CHECKOUT / "etc" / path).exists()}


#: They include sudoers: a user that may start privsep-helper by sudo has root's rights, and a host that runs
#: nova-privileged does not need it.
_EXAMPLES = {f"etc/{name}": f"usr/share/doc/{COMMON}/examples/{Path(name).name}" for name in (
    "nova/nova.conf.sample", "nova/policy.yaml.sample", "monitoring/nova-alerts.yml", "monitoring/nova-dashboard.json",
    "monitoring/prometheus.yml", "sudoers.d/nova", "drop-ins/as-root.conf", "drop-ins/with-sudo.conf",
    "nova/nova-config-generator.conf", "nova/nova-policy-generator.conf")}
#: Files that deployment tools edit, at the paths that these tools expect.
_EDITED = {f"etc/nova/{name}": f"etc/nova/{name}" for name in ("api-paste.ini", "rootwrap.conf",
                                                               "rootwrap.d/compute.filters")}

#: The first rotates the same logs a second time; the second allows daemons to start root's helper by sudo.
_DROPPED = ("/etc/logrotate.d/nova-common", "/etc/sudoers.d/nova-common")
_PROXIES = "nova-consoleproxy"


def _daemon(name: str, summary: str, *programs: str, depends: tuple[str, ...] = (), config: Config | None = None,
            recommends: tuple[str, ...] = (), provides: tuple[str, ...] = (),
            replaces: tuple[str, ...] = ()) -> Package:
    return Package(name=name, summary=summary, programs=(name, *programs), depends=depends, recommends=recommends,
                   config=config, files=_users(name), provides=provides, replaces=replaces)


def _alias(name: str, summary: str, depends: tuple[str, ...] = ()) -> Package:
    """Return an empty package with a name that deployment tools and distributions use for other packages."""
    return Package(name=name, summary=summary, programs=(), unit=False, depends=depends)


def _hypervisor(kind: str, summary: str) -> Package:
    """Return a package whose nova-compute.conf selects the driver. Only one of them can be installed."""
    name, one_of = f"nova-compute-{kind}", "nova-compute-hypervisor"
    return Package(name=name, summary=summary, programs=(), unit=False, depends=("nova-compute",), provides=(one_of,),
                   conflicts=(one_of,), files={f"etc/packaging/{name}.conf": "etc/nova/nova-compute.conf"})


PACKAGES = (
    Package(
        name=COMMON, summary="Nova's code, its libraries, its user, and the tools of administrators", unit=False,
        binary=True, programs=("nova-manage", "nova-status", "nova-policy", "nova-all", "nova-rootwrap",
                                "nova-rootwrap-daemon"), depends=("systemd",),
        suggests=("bash-completion", "logrotate"), config=Config("nova.conf", 0o640, "root", "nova"),
        files={**_users("nova"), "etc/logrotate.d/nova": "etc/logrotate.d/nova",
               "etc/completion/nova-manage": "usr/share/bash-completion/completions/nova-manage",
               **_EDITED, **_EXAMPLES}, replaces=("nova-compute",), drops=_DROPPED),
    _daemon("nova-api", "Nova's compute API and metadata service", "nova-api-wsgi", replaces=(COMMON,)),
    _daemon("nova-api-os-compute", "Nova's compute API, without the metadata service"),
    _daemon("nova-api-ec2", "Nova's EC2 API"),
    _daemon("nova-api-metadata", "Nova's metadata service, without the compute API", "nova-metadata-wsgi",
            replaces=(COMMON, "nova-api")),
    _daemon("nova-placement-api", "Placement's API over Nova's own claims", "nova-placement-wsgi"),
    _daemon("nova-scheduler", "Nova's scheduler: chooses hosts for servers"),
    Package(
        name="nova-conductor", summary="Nova's conductor: the databases, and all operations on servers",
        programs=("nova-conductor",), files=_users("nova-conductor"),
        config=Config("nova-conductor.conf", 0o600, "nova-conductor", "root")),
    Package(
        name="nova-compute", summary="Nova's compute service: the guests of one host, by libvirt", binary=True,
        programs=("nova-compute",),
        depends=("nova-privileged", "qemu-system-x86", "qemu-utils", "libvirt-daemon-system", "libvirt-clients",
                 "genisoimage", "dosfstools", "e2fsprogs", "bubblewrap", "iptables", "iproute2", "conntrack"),
        recommends=("qemu-system-modules-spice | qemu-system-x86 (<< 1:9)",),
        suggests=("nfs-common", "openvswitch-switch", "ovmf", "swtpm", "swtpm-tools"),
        files={**_users("nova-compute"),
               "etc/modules-load.d/nova-compute.conf": "usr/lib/modules-load.d/nova-compute.conf"}),
    _daemon("nova-network", "Nova's own networks: bridges, DHCP, floating addresses", "nova-dhcpbridge",
            depends=("nova-privileged", "dnsmasq-base", "dnsmasq-utils", "iptables", "iproute2", "conntrack",
                     "iputils-arping"),
            recommends=("radvd",)),
    Package(
        name="nova-privileged", summary="Nova's helper with root's rights, for nova-compute and nova-network",
        programs=("nova-privileged",), depends=("bubblewrap",),
        files={"etc/systemd/nova-privileged.socket": "usr/lib/systemd/system/nova-privileged.socket"}),
    _daemon("nova-consoleauth", "Nova's tokens for consoles"),
    _daemon("nova-cert", "Nova's certificates, for bundled images and cloudpipe"),
    _daemon("nova-imageproxy", "Nova's image proxy: images for compute hosts, by tickets",
            config=Config("nova-imageproxy.conf", 0o600, "nova-imageproxy", "root")),
    _daemon("nova-objectstore", "Nova's object store: S3 on files, for bundled images"),
    _daemon("nova-novncproxy", "Nova's console proxy: VNC in the browser", depends=("novnc",),
            replaces=(_PROXIES,)),
    _daemon("nova-spicehtml5proxy", "Nova's console proxy: SPICE in the browser", depends=("spice-html5",),
            provides=("nova-spiceproxy",), replaces=(_PROXIES,)),
    _daemon("nova-serialproxy", "Nova's console proxy: serial lines", depends=("libjs-xterm", "node-xterm"),
            replaces=(_PROXIES,)),
    _daemon("nova-xvpvncproxy", "Nova's console proxy: VNC for the Java viewer"),
    _alias("python3-nova", "Nova's code, and its files for WSGI servers", depends=("nova-api", "nova-api-metadata")),
    _alias(_PROXIES, "Nova's console proxy, which is nova-novncproxy", depends=("nova-novncproxy",)),
    _hypervisor("kvm", "Nova's compute service, with KVM"),
    _hypervisor("qemu", "Nova's compute service, with QEMU's emulation"),
)

"""Debian packages from the checkout, on a new machine: built, installed, in use, upgraded, removed, purged."""

from __future__ import annotations

import re
import time

from deblib.table import BUILDING
from nova.version import RELEASE
from stacklib.layout import CHECKOUT
from tests.fresh import layers
from tests.fresh.machine import Machine

DAEMONS = ("nova-conductor", "nova-scheduler", "nova-imageproxy", "nova-api", "nova-compute")
INSTALLED = ("nova-common", *DAEMONS)
APT_S, BUILD_S, STEP_S, READY_S = 1200.0, 900.0, 300.0, 120.0  # on a machine that others use, too
APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y"
AROUND = "rabbitmq-server curl openssl"
IMAGE, URL = "00000000-0000-4000-8000-000000000001", "http://127.0.0.1:8774/v2.1"
#: Who may read what.
FILES = {"/etc/nova": "root:nova 750", "/etc/nova/nova.conf": "root:nova 640",
         "/etc/nova/nova-conductor.conf": "nova-conductor:root 600",
         "/etc/nova/nova-imageproxy.conf": "nova-imageproxy:root 600",
         "/var/lib/nova": "nova:nova 755", "/var/lib/nova-conductor": "nova-conductor:nova-conductor 755",
         "/var/log/nova": "root:nova 770"}
#: In the release before, daemons shared a user.
FILES_BEFORE = {"/etc/nova/nova-imageproxy.conf": "nova:root 600"}
BROKER = """
for vhost in nova nova-hosts; do rabbitmqctl -q add_vhost $vhost; done
rabbitmqctl -q add_user nova broker
for vhost in nova nova-hosts; do rabbitmqctl -q set_permissions -p $vhost nova '.*' '.*' '.*'; done
rabbitmqctl -q add_user host-fresh host
nova-manage host rights fresh | sh
"""
#: ``>`` keeps the owners and modes that the packages gave.
CONFIGURE = """
cat > /etc/nova/nova.conf <<END
[DEFAULT]
transport_url = rabbit://nova:broker@127.0.0.1:5672/nova
hosts_transport_url = rabbit://host-fresh:host@127.0.0.1:5672/nova-hosts
my_ip = 127.0.0.1
osapi_compute_listen = 127.0.0.1
enabled_apis = osapi_compute
compute_driver = fake.FakeDriver
[api]
auth_strategy = noauth2
[glance]
api_servers = http://127.0.0.1:9292
[image_proxy]
listen = 127.0.0.1
END
key=$(openssl rand -base64 32 | tr '+/' '-_')
cat > /etc/nova/nova-imageproxy.conf <<END
[image_proxy]
key = $key
END
cat > /etc/nova/nova-conductor.conf <<END
[DEFAULT]
hosts_transport_url = rabbit://nova:broker@127.0.0.1:5672/nova-hosts
[api_database]
connection = sqlite:////var/lib/nova-conductor/api.db
[database]
connection = sqlite:////var/lib/nova-conductor/cell.db
[conductor]
host_secret_key = $(nova-manage host new-key)
[image_proxy]
key = $key
END
"""
TABLES = """
nova-manage api_db sync
nova-manage db sync
chown nova-conductor: /var/lib/nova-conductor/*
systemctl enable --now nova-conductor
nova-manage host enroll fresh --runs nova-compute | install -m 0600 -o nova /dev/stdin /var/lib/nova/host_token
"""
#: An image service in small: the tests' own.
GLANCE = f"""exec env PYTHONPATH=. /usr/lib/nova/bin/python -c "
import time
from tests.fakes.glance import FakeGlance
glance = FakeGlance()
glance.url = 'http://127.0.0.1:9292'
glance.add(b'an image', id='{IMAGE}', name='tiny')
with glance:
    time.sleep(100_000)
" """
CURL = ("curl -sS -H 'X-Auth-Token: admin:demo' -H 'OpenStack-API-Version: compute 2.90' "
        "-H 'Content-Type: application/json'")
FLAVOR = """{"flavor": {"name": "m1.tiny", "id": "1", "ram": 512, "vcpus": 1, "disk": 1}}"""
SERVER = f"""{{"server": {{"name": "vm1", "flavorRef": "1", "imageRef": "{IMAGE}", "networks": "none"}}}}"""
#: All files but those of the kernel, of the checkout, and of the packages' own archives.
OURS = ("find / -xdev \\( -path /proc -o -path /sys -o -path /run -o -path /root -o -path /var/log/journal "
        "-o -path /var/cache -o -path /tmp \\) -prune -o -name '*nova*' -print")
#: How doc/install.rst names the files of all packages that a machine has: apt would remove one that is left out.
ALL_THAT_ARE_HERE = re.compile(r"^    apt install (\$\(dpkg-query .*\) \./nova-privileged_\*\.deb)$", re.M)
#: What the conductor's package says when its tables are to be synced before it starts.
TABLES_FIRST = re.compile(r"^    (nova-manage api_db sync && .*)$", re.M)
DATA = ("/var/lib/nova", "/var/lib/nova-conductor", "/var/lib/rabbitmq", "/var/lib/systemd")


def packages(machine: Machine) -> str:
    """The whole life of the packages, in order."""
    machine.ok(f"{APT} update && {APT} install --no-install-recommends {' '.join(BUILDING)} {AROUND}", APT_S)
    machine.ok(f"cd /{layers.BEFORE} && bin/build-debs --output /root/first", BUILD_S)
    installed(machine)
    in_use(machine)
    upgraded(machine)
    removed(machine)
    return "a server outlives an upgrade of its packages; a purge leaves nothing but data"


def apt_install(machine: Machine, files: str) -> str:
    said = machine.ok(f"{APT} install --no-install-recommends {files}", APT_S)
    return said.replace("\r", "")  # dpkg speaks to a terminal of apt's


def installed(machine: Machine) -> None:
    """Users, owners, units; no daemon runs before it is configured; apt does not take Debian's nova for newer."""
    said = apt_install(machine, " ".join(f"/root/first/{name}_*.deb" for name in INSTALLED))
    for daemon in DAEMONS:
        assert re.search(f"^{daemon}: not started.* systemctl enable --now {daemon}$", said, re.M), said[-2000:]
    states = machine.run(f"systemctl is-active {' '.join(DAEMONS)}; systemctl is-enabled {' '.join(DAEMONS)}").text
    assert states.split() == ["inactive"] * len(DAEMONS) + ["disabled"] * len(DAEMONS)
    assert owners(machine) == FILES | FILES_BEFORE
    machine.ok(f"systemd-analyze verify {' '.join(f'{daemon}.service' for daemon in DAEMONS)}", STEP_S)
    assert re.fullmatch(r"[\d.]+\n", machine.ok("nova-manage version"))
    machine.ok("/usr/lib/nova/bin/python -c 'import libvirt'")
    assert "nova" not in machine.ok(f"{APT} -s upgrade")


def owners(machine: Machine) -> dict[str, str]:
    """Who may read what."""
    told = machine.ok(f"stat -c '%n %U:%G %a' {' '.join(FILES)}")
    return dict(line.split(" ", 1) for line in told.splitlines())


def in_use(machine: Machine) -> None:
    """From the packages' files to a server on the fake driver."""
    machine.ok(f"set -e\n{BROKER}{CONFIGURE}{TABLES}", STEP_S)
    machine.begin(GLANCE)
    machine.ok(f"systemctl enable --now {' '.join(DAEMONS)}", STEP_S)
    wait_for(machine, "nova-manage service list", r"nova-compute .*:-\)")
    machine.ok(f"{CURL} -f -d '{FLAVOR}' {URL}/flavors && {CURL} -f -d '{SERVER}' {URL}/servers")
    wait_for(machine, f"{CURL} {URL}/servers/detail", '"status": ?"ACTIVE"')


def upgraded(machine: Machine) -> None:
    """From the release before: each daemon that runs is another process afterwards, and goes on as before."""
    machine.ok("bin/build-debs --output /root/second "
               "--constraints /usr/share/doc/nova-common/dependencies", BUILD_S)
    machine.ok("systemctl disable --now nova-scheduler")
    before = main_pids(machine)
    (names,) = ALL_THAT_ARE_HERE.findall((CHECKOUT / "doc/install.rst").read_text())
    said = apt_install(machine, names.replace("./", "/root/second/"))
    assert "does not start" not in said, f"{said[-2000:]}\n{machine.run('journalctl --no-pager -n 60').text}"
    if told := TABLES_FIRST.search(said):  # the releases' tables differ
        machine.ok(told[1])
    assert machine.ok("dpkg-query -W -f '${Version}' nova-api")== f"10:{RELEASE}-1"
    after = main_pids(machine)
    assert (before.pop("nova-scheduler"), after.pop("nova-scheduler")) == ("0", "0")
    assert all(pid not in ("0", before[name]) for name, pid in after.items()), (before, after)
    wait_for(machine, "nova-manage service list", r"nova-compute .*:-\)")
    wait_for(machine, f"{CURL} {URL}/servers/detail", '"name": ?"vm1"')
    assert owners(machine) == FILES
    assert machine.ok(f"ps -o user= -p {after['nova-compute']}").strip() == "nova"
    machine.ok("systemctl is-active nova-privileged.socket")
    machine.ok("grep -q broker /etc/nova/nova.conf")
    tables_are_behind(machine, after["nova-conductor"])


def tables_are_behind(machine: Machine, pid: str) -> None:
    """The conductor that runs goes on, and a line says what to do."""
    machine.ok("mv /var/lib/nova-conductor/api.db /root")
    told = machine.ok("/var/lib/dpkg/info/nova-conductor.postinst configure 1")
    machine.ok("mv /root/api.db /var/lib/nova-conductor")
    assert "nova-manage api_db sync" in told and main_pids(machine)["nova-conductor"] == pid


def removed(machine: Machine) -> None:
    """Daemons end, files go, data stays."""
    names = " ".join(INSTALLED)
    machine.ok(f"{APT} remove {names}", APT_S)
    assert machine.run(f"systemctl is-active {' '.join(DAEMONS)}").text.split() == ["inactive"] * len(DAEMONS)
    machine.ok("test -e /etc/nova/nova.conf && test ! -e /usr/lib/nova && test ! -e /usr/bin/nova-manage")
    machine.ok(f"{APT} purge {names} nova-privileged", APT_S)
    left = [path for path in machine.ok(OURS).split() if not path.startswith(DATA)]
    assert left == [], "\n".join(machine.run(f"find {' '.join(left)} | head -40").text.split())
    machine.ok("test -s /var/lib/nova-conductor/cell.db && test -e /var/lib/nova/host_id")


def main_pids(machine: Machine) -> dict[str, str]:
    """Of each daemon; 0 where it does not run."""
    return {name: machine.ok(f"systemctl show -P MainPID {name}").strip() for name in DAEMONS}


def wait_for(machine: Machine, command: str, words: str) -> None:
    """Until the command prints the words."""
    deadline = time.monotonic() + READY_S
    while not re.search(words, (said := machine.run(command, 60)).text):
        assert time.monotonic() < deadline, f"{command}: no {words} after {READY_S:.0f} s\n{said.last_words}"
        time.sleep(1)

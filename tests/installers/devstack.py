"""devstack with each ``CELLSV2_SETUP``, and grenade's upgrade of it: a user with sudo, the sources installed where they
lie, uWSGI behind Apache, units of systemd named devstack@. With ``superconductor``, its default, the API's tier has
cell0, and cell1 has a broker's vhost and a conductor of its own.

Played are stack.sh's steps for nova. Databases are made once only: stack.sh begins each run with new ones.
"""

from __future__ import annotations

import re

from tests.fresh import layers, trees
from tests.installers import devstack_files as files
from tests.installers.devstack_files import BIN, CELL_CONF, CONF, DATA, DEST, SINGLE, STACK, SUPER, VENV, Setup
from tests.installers.site import Site

INSTALL_S, START_S, READY_S = 900.0, 120.0, 60.0
APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y"
#: Of devstack's lists of packages: what nova needs, and what all services need.
PACKAGES = ("sudo curl apache2 uwsgi uwsgi-plugin-python3 python3-venv python3-dev gcc libc6-dev pkg-config "
            "libvirt-dev libsystemd-dev novnc iproute2 procps ebtables iptables dnsmasq-base genisoimage qemu-utils "
            "dosfstools e2fsprogs ovmf bubblewrap")
#: What the services that come before nova have put into the one virtual environment of all.
OF_OTHERS = "keystonemiddleware oslo.messaging oslo.policy oslo.config PyMySQL python-memcached systemd-python"
API, METADATA = "http://127.0.0.1/compute/v2.1/", "http://127.0.0.1:8775/"


def tree() -> layers.Made:
    """devstack's packages and its user; the virtual environment as it is when nova's turn comes."""
    command = (f"set -e; {APT} update; {APT} install --no-install-recommends {PACKAGES}; "
               f"useradd -s /bin/bash -d {DEST} -m {STACK}; chmod 0755 {DEST}; install -d -o {STACK} {DATA}; "
               f"echo '{STACK} ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/50_stack_sh; "
               f"python3 -m venv {VENV}; {BIN}/pip install -q {OF_OTHERS} libvirt-python; chown -R {STACK} {VENV}")
    return trees.prepared("devstack", command)


def single(site: Site) -> str:
    return story(site, SINGLE)


def superconductor(site: Site) -> str:
    return story(site, SUPER)


def story(site: Site, setup: Setup) -> str:
    installed(site)
    configured(site, setup)
    bootstrapped(site)
    started(site, setup)
    healthy(site, setup)
    site.boot("vm1")
    console(site)
    journal(site)
    again(site, setup)
    upgraded(site, setup)
    assert site.status("vm1") == "ACTIVE"
    site.boot("vm2")
    return "stack.sh installs, and once more; grenade upgrades; a server of before lives on"


def installed(site: Site) -> None:
    """``install_nova``: the sources, installed where they lie by the user, and nova-manage's words for bash; and
    stack.sh's links to what is looked for outside of the virtual environment."""
    site.machine.ok(f"cp -r /root/nova/. {DEST}/nova && chown -R {STACK} {DEST}/nova")
    as_stack(site, f"{BIN}/pip install -q -e {DEST}/nova", INSTALL_S)
    as_stack(site, f"sudo install -D -m 0644 -o {STACK} {DEST}/nova/tools/nova-manage.bash_completion "
                   "/etc/bash_completion.d/nova-manage.bash_completion")
    as_stack(site, f"sudo ln -sf {BIN}/nova-manage {BIN}/privsep-helper /usr/local/bin")


def configured(site: Site, setup: Setup) -> None:
    """``configure_nova``, ``configure_rootwrap``, ``create_nova_accounts``, ``create_nova_conf``."""
    as_stack(site, files.FOLDERS)
    as_stack(site, files.ROOTWRAP)
    for path, options in files.inis(site, setup).items():
        site.ini(path, options, f"{STACK}:{STACK}", "0644")
    for name, text in files.units(setup).items():
        site.write(f"/etc/systemd/system/devstack@{name}.service", text)
    site.write("/etc/apache2/sites-available/nova-api-wsgi.conf", files.APACHE)
    as_stack(site, "sudo a2enmod -q proxy proxy_uwsgi; sudo a2ensite -q nova-api-wsgi; sudo systemctl daemon-reload; "
                   "sudo systemctl reload-or-restart apache2")
    accounts(site)


def accounts(site: Site) -> None:
    """nova's endpoint is Apache's, without a port."""
    ids = site.openstack("endpoint list --service compute -f value -c ID").split()
    for id in ids:
        site.openstack(f"endpoint set --url {API.rstrip('/')} {id}")


def bootstrapped(site: Site, made: int = 0) -> None:
    """``init_nova``: cell1 by its own file, then the API's database, cell0 and the records of both cells.

    ``made``: how create_cell ends. It is 2 for a cell that is there, which stack.sh never sees: its databases are new.
    """
    url0 = files.database(site, "nova_cell0")
    manage(site, f"--config-file {CELL_CONF} db sync --local_cell")
    manage(site, f"--config-file {CONF} api_db sync")
    manage(site, f"cell_v2 map_cell0 --database_connection '{url0}'")
    manage(site, f"--config-file {CONF} db sync")
    manage(site, f"--config-file {CONF} db online_data_migrations")
    said = site.machine.run(f"{BIN}/nova-manage --config-file {CONF} --config-file {CELL_CONF} cell_v2 create_cell "
                            "--name cell1", START_S, STACK)
    assert said.status == made, said.last_words


def started(site: Site, setup: Setup) -> None:
    """``start_nova_api``, ``start_nova_rest``, ``start_nova_compute``: enabled, started, waited for."""
    for name in setup.services:
        as_stack(site, f"sudo systemctl enable -q devstack@{name} && sudo systemctl start devstack@{name}", START_S)
        if name == "n-api":
            site.wait_for(f"curl -g -k --noproxy '*' -s -o /dev/null -w '%{{http_code}}' {API}", r"^(?!503)\d{3}$",
                          READY_S)


def healthy(site: Site, setup: Setup) -> None:
    """``is_nova_ready``, the discovery of hosts, the check before tempest; no unit has failed."""
    host = site.machine.ok("hostname").strip()
    site.wait_for(f". /srv/neighbours/openrc-admin; openstack compute service list --host {host} "
                  "--service nova-compute -c ID -f value", r"(?m)^(\d+|[0-9a-f-]{36})$", READY_S)
    manage(site, f"--config-file {CONF} cell_v2 list_cells --verbose")
    manage(site, f"--config-file {CONF} cell_v2 discover_hosts --verbose")
    as_stack(site, f"{BIN}/nova-status --config-file {CONF} upgrade check", START_S)
    site.machine.ok(f"curl -sf {METADATA} && curl -sf http://127.0.0.1:6080/vnc_lite.html")
    assert set(site.machine.ok(f"systemctl is-active {units(setup)}").split()) == {"active"}
    assert not site.machine.ok("systemctl list-units --failed --no-legend 'devstack@*'")


def console(site: Site) -> None:
    """A user's: its address is good, and noVNC comes from there."""
    url = site.openstack("console url show --novnc -f value -c url vm1").strip()
    assert "noVNC" in site.machine.ok(f"curl -sf '{url}'"), url


def journal(site: Site) -> None:
    """What devstack's users ask the journal for: the lines of one request, of all services, in devstack's format."""
    request, = set(site.openstack("server event list -f value -c 'Request ID' vm1").split())
    said = site.machine.ok(f"journalctl -a -o cat -u 'devstack@*' REQUEST_ID={request}")
    assert re.search(rf"INFO nova\.\S+ \[\x1b\[01;36m\S+ {request} \x1b\[00;36madmin admin", said), said[-2000:]


def again(site: Site, setup: Setup) -> None:
    """All steps once more leave files, cells and processes as they are."""
    before = state(site, setup)
    installed(site)
    configured(site, setup)
    bootstrapped(site, made=2)
    started(site, setup)
    healthy(site, setup)
    assert state(site, setup) == before
    assert site.status("vm1") == "ACTIVE"


def state(site: Site, setup: Setup) -> tuple[str, str, str]:
    """What a run may change."""
    return (site.machine.ok("find /etc/nova -type f -exec sha256sum {} + | sort"),
            manage(site, f"--config-file {CONF} cell_v2 list_cells --verbose"),
            site.machine.ok(f"systemctl show -P MainPID {units(setup)}"))


def upgraded(site: Site, setup: Setup) -> None:
    """grenade: everything of nova stops, but for the guests; one reads the database meanwhile."""
    uuid = site.openstack("server show -f value -c id vm1").strip()
    as_stack(site, f"sudo systemctl stop {units(setup)}", START_S)
    installed(site)
    for words in ("api_db sync", "db sync",
                  f"cell_v2 map_cell0 --database_connection '{files.database(site, 'nova_cell0')}'",
                  f"cell_v2 simple_cell_setup --transport-url {site.broker(setup.vhost)}",
                  f"cell_v2 verify_instance --uuid {uuid}"):
        manage(site, f"--config-file {CONF} {words}")
    assert site.machine.run(f"{BIN}/nova-status --config-file {CONF} upgrade check", START_S, STACK).status < 2
    started(site, setup)
    manage(site, f"--config-file {CONF} db online_data_migrations")
    healthy(site, setup)


def manage(site: Site, words: str) -> str:
    return as_stack(site, f"{BIN}/nova-manage {words}", START_S)


def as_stack(site: Site, command: str, seconds: float = 60) -> str:
    """As stack.sh runs: the user's, ended by the first error."""
    return site.machine.ok(f"set -e; cd {DEST}; {command}", seconds, STACK)


def units(setup: Setup) -> str:
    return " ".join(f"devstack@{name}" for name in setup.services)

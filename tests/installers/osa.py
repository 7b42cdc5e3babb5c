"""openstack-ansible's role os_nova, from sources: a virtual environment for each release, in which its configuration
lies, uWSGI, and units of the user nova in one slice.

Played are the role's tasks in its order, with its reading of what they print. Handlers restart the services when a task
has changed a file. HAProxy, certificates and libvirt's own configuration are other roles'.
"""

from __future__ import annotations

import re

from tests.fresh import layers, trees
from tests.installers import osa_files as files
from tests.installers.osa_files import CELL0_DATABASE, CELL_DATABASE, CELL_TRANSPORT, SERVICES, USER
from tests.installers.site import Site

INSTALL_S, START_S, WAIT_S = 900.0, 180.0, 50.0
APT = "DEBIAN_FRONTEND=noninteractive apt-get -q -y"
#: Of the role's lists, for Debian.
PACKAGES = ("sudo curl git python3-venv python3-dev gcc libc6-dev pkg-config libvirt-dev libsystemd-dev openssh-client "
            "novnc iproute2 procps ebtables iptables dnsmasq-base genisoimage qemu-utils dosfstools e2fsprogs ovmf "
            "bubblewrap")
#: ``nova_pip_packages``, but for nova itself.
PIP_PACKAGES = "PyMySQL pymemcache python-memcached systemd-python libvirt-python"
SOURCE, RELEASES = "/srv/git/nova", ("31.0.0", "31.1.0")
#: Where the client's environment has openstacksdk, which the module compute_service_info calls.
SDK = "/opt/nova-stack/clients/bin/python"
ASKED = "import openstack; print(len(list(openstack.connect().compute.services(binary='nova-compute', host='{host}'))))"
CELL0 = re.compile(r"[0-]{36}")


def tree() -> layers.Made:
    """What the machine has before the role runs: packages, and another role's uWSGI. The role's own packages are built
    once, for pip's cache."""
    command = (f"set -e; {APT} update; {APT} install --no-install-recommends {PACKAGES}; mkdir -p /openstack/venvs; "
               "python3 -m venv /openstack/venvs/uwsgi; /openstack/venvs/uwsgi/bin/pip install -q uwsgi; "
               f"python3 -m venv /tmp/w; /tmp/w/bin/pip install -q wheel {PIP_PACKAGES}; rm -rf /tmp/w")
    return trees.prepared("openstack-ansible", command)


def story(site: Site) -> str:
    offered(site)
    first, second = (f"/openstack/venvs/nova-{release}" for release in RELEASES)
    assert played(site, first)
    healthy(site)
    site.boot("vm1")
    before = state(site)
    assert not played(site, first)
    site.machine.ok("systemctl reload nova-conductor nova-scheduler nova-compute")
    old_rows(site, first)
    healthy(site)
    assert state(site) == before and site.status("vm1") == "ACTIVE"
    assert played(site, second)
    manage(site, second, "db online_data_migrations")
    healthy(site)
    assert site.status("vm1") == "ACTIVE"
    site.boot("vm2")
    return "os_nova plays, plays again and upgrades to a second environment; a server of before lives on"


def offered(site: Site) -> None:
    """``nova_git_repo``: the sources, as a repository."""
    site.machine.ok(f"mkdir -p /srv/git && cp -r /root/nova {SOURCE} && cd {SOURCE} && git init -q && git add -A && "
                    "git -c user.name=operator -c user.email=operator@example.org commit -q -m sources", START_S)


def played(site: Site, venv: str) -> bool:
    """The role, once; whether it had anything to change."""
    installed(site, venv)
    changed = configured(site, venv)
    bootstrapped(site, venv)
    started(site, changed)
    waited(site)
    manage(site, venv, "cell_v2 discover_hosts --verbose")
    return changed


def installed(site: Site, venv: str) -> None:
    """An environment that is there is not made again. pip wants a distribution called nova."""
    site.machine.ok(f"""set -e
        test ! -e {venv}/bin/nova-manage || exit 0
        python3 -m venv {venv}
        {venv}/bin/pip install -q setuptools wheel
        DIST_EXTRA_CONFIG=etc/packaging/nova.cfg {venv}/bin/pip install -q 'git+file://{SOURCE}#egg=nova' {PIP_PACKAGES}
        """, INSTALL_S)


def configured(site: Site, venv: str) -> bool:
    """``nova_pre_install``, ``nova_post_install``; whether a file is another than before."""
    before = digests(site)
    etc = f"{venv}/etc/nova"
    site.machine.ok(f"set -e; {files.folders(venv)}")
    site.ini(f"{etc}/nova.conf", files.nova_conf(site), f"root:{USER}")
    site.write(f"{etc}/vendor_data.json", "{}", f"root:{USER}", "0640")
    site.write(f"{etc}/policy.yaml", "---\n", f"root:{USER}", "0640")
    site.write("/opt/merged.py", files.MERGED)
    site.machine.ok(f"set -e; {files.core_files(venv)}")
    site.write("/etc/sudoers.d/nova_sudoers", files.sudoers(venv), mode="0440")
    for name, options in files.uwsgi(venv).items():
        site.ini(f"/etc/uwsgi/{name}.ini", options, mode="0644")
    for name, text in files.units(venv).items():
        site.write(f"/etc/systemd/system/{name}.service", text)
    return digests(site) != before


def digests(site: Site) -> str:
    return site.machine.run("sha256sum /etc/nova/*.* /etc/sudoers.d/* /etc/uwsgi/*.ini "
                            "/etc/systemd/system/nova-*.service").text


def bootstrapped(site: Site, venv: str) -> None:
    """``nova_db_setup``: cells are made where list_cells has none, and changed where a row lacks the vhost."""
    files.database(site, "nova_cell0")
    manage(site, venv, "api_db sync")
    listed = manage(site, venv, "cell_v2 list_cells")
    if CELL0.search(listed) is None:
        manage(site, venv, f"cell_v2 map_cell0 --database_connection '{CELL0_DATABASE}'")
    manage(site, venv, "db sync")
    row = next((line for line in listed.splitlines() if " cell1 " in line), "")
    urls = f"--database_connection '{CELL_DATABASE}' --transport-url '{CELL_TRANSPORT}'"
    if not row:
        manage(site, venv, f"cell_v2 create_cell --name cell1 {urls}")
    elif f"{site.broker_address.rpartition(':')[2]}/nova" not in row:
        manage(site, venv, f"cell_v2 update_cell --cell_uuid {row.split()[3]} {urls}")
    site.machine.ok(f"{venv}/bin/nova-status --config-file {venv}/etc/nova/nova.conf upgrade check", START_S, USER)


def started(site: Site, changed: bool) -> None:
    """Started and enabled by ``start_order``; handlers restart what runs when files changed."""
    site.machine.ok("systemctl daemon-reload")
    for name in SERVICES:
        site.machine.ok(f"systemctl enable -q {name} && systemctl {'restart' if changed else 'start'} {name}", START_S)


def waited(site: Site) -> None:
    """``nova_compute_wait``: 10 times, 5 s apart."""
    host = site.machine.ok("hostname").strip()
    site.wait_for(f'. /srv/neighbours/openrc-admin; {SDK} -c "{ASKED.format(host=host)}"', r"(?m)^1$", WAIT_S)


def old_rows(site: Site, venv: str) -> None:
    """``nova_db_post_setup``: what the timers nova-archive-deleted and nova-purge-deleted run, with date's words."""
    command = f"{venv}/bin/nova-manage db {{}} --all-cells --before \"$(date -d '-60 days' +'%Y-%m-%d %H:%M')\""
    for words, nothing in (("archive_deleted_rows --until-complete --purge --task-log", 0), ("purge", 3)):
        said = site.machine.run(command.format(words), START_S, USER)
        assert said.status == nothing, said.last_words


def healthy(site: Site) -> None:
    """Units run, of the one user, in the one slice; HAProxy's checks of the APIs and of the console proxy."""
    for name, value in (("ActiveState", "active"), ("User", USER), ("Slice", "nova.slice")):
        shown = site.machine.ok(f"systemctl show -P {name} {' '.join(SERVICES)}").split()
        assert shown == [value] * len(SERVICES), (name, shown)
    site.machine.ok("systemctl is-active nova-api")
    for url in ("http://127.0.0.1:8774/", "http://127.0.0.1:8775/", "http://127.0.0.1:6080/vnc_lite.html"):
        site.wait_for(f"curl -A osa-haproxy-healthcheck -s -o /dev/null -w '%{{http_code}}' --head {url}", "^200$",
                      START_S)


def state(site: Site) -> tuple[str, str]:
    """Cells and processes."""
    return (manage(site, f"/openstack/venvs/nova-{RELEASES[0]}", "cell_v2 list_cells --verbose"),
            site.machine.ok(f"systemctl show -P MainPID {' '.join(SERVICES)}"))


def manage(site: Site, venv: str, words: str) -> str:
    """By full path, with the file of that environment, as the user nova."""
    return site.machine.ok(f"{venv}/bin/nova-manage --config-file {venv}/etc/nova/nova.conf {words}", START_S, USER)

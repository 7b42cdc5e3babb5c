"""kolla-ansible, with cells and without them: its own playbook, roles, templates and filter, from PyPI, install this;
its images' own start scripts, from PyPI as well, start it.

With cells, the API's tier has cell0 and a super conductor, and the conductor of the other cell has the api database,
too. Both have one broker and vhost, which is kolla's default.

Played are the image (the machine's own tree, in which the steps of kolla's Dockerfiles for nova are done) and the
engine of containers (``kolla_parts``). A proxy for databases, HAProxy, the containers for sshd and libvirtd, and
settings of the kernel, which is not the machine's own, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tests.fresh import layers, trees
from tests.installers.site import Site

RELEASES = "kolla-ansible==22.2.0 kolla==23.0.0"
JUDGE, ROLES = "/opt/kolla", "/opt/kolla/share/kolla-ansible/ansible"
PARTS = "/root/nova/tests/installers/kolla_parts"
IMAGES = "/opt/kolla/lib/python3.11/site-packages/kolla/docker"
VENV = "/var/lib/kolla/venv"
#: Of kolla's images for nova: what their Dockerfiles install beside Python.
PACKAGES = ("sudo curl iproute2 procps dnsmasq ebtables iptables openssh-client python3-libvirt python3-yaml "
            "python3-dev gcc libc6-dev ovmf dosfstools e2fsprogs genisoimage qemu-utils novnc bubblewrap")
MADE_S, PLAY_S = 900.0, 900.0
CONTAINERS = ("nova_api", "nova_metadata", "nova_scheduler", "nova_conductor", "nova_compute", "nova_novncproxy")
#: Of the container in which Ansible's modules for OpenStack run.
CLOUDS = """clouds:
  kolla-admin-internal:
    auth: {{auth_url: "{keystone}/v3", project_domain_name: Default, user_domain_name: Default, project_name: admin,
           username: admin}}
    interface: internal
    region_name: RegionOne
"""
#: The rest is kolla's own.
GLOBALS = {
    "kolla_base_distro": "debian", "kolla_internal_vip_address": "127.0.0.1", "network_interface": "lo",
    "neutron_external_interface": "lo", "enable_haproxy": "no", "enable_keepalived": "no", "enable_proxysql": "no",
    "enable_rabbitmq": "no", "enable_mariadb": "yes", "nova_compute_virt_type": "qemu",
    "enable_nova_libvirt_container": "no", "libvirt_enable_sasl": "no", "enable_nova_ssh": "no",
    "set_sysctl": "no", "nova_compute_startup_delay": "5", "openstack_service_workers": "1"}


class Setup(NamedTuple):
    """``options``: further ones of globals.yml; ``containers``: what has to run."""

    options: Mapping[str, str]
    containers: tuple[str, ...]


PLAIN = Setup({}, CONTAINERS)
CELLS = Setup({"enable_cells": "yes"}, (*CONTAINERS, "nova_super_conductor"))


def tree() -> layers.Made:
    """What the machine that plays needs, and the packages of the images; nothing of nova."""
    command = (f"apt-get -q -y update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "
               f"{PACKAGES} && python3 -m venv {JUDGE} && "
               f"{JUDGE}/bin/pip install -q {RELEASES} ansible openstacksdk==4.7.1 PyMySQL && "
               f"python3 -m venv --system-site-packages {VENV} && {VENV}/bin/pip install -q uwsgi pycadf")
    return trees.prepared("kolla", command)


def plain(site: Site) -> str:
    return story(site, PLAIN)


def cells(site: Site) -> str:
    return story(site, CELLS)


def story(site: Site, setup: Setup) -> str:
    image_built(site)
    configured(site, setup)
    played(site, "deploy")
    healthy(site, setup)
    site.boot("vm1")
    before = pids(site, setup)
    again = played(site, "deploy")
    assert pids(site, setup) == before and site.status("vm1") == "ACTIVE"
    assert "RUNNING HANDLER" not in again
    played(site, "upgrade")
    healthy(site, setup)
    assert site.status("vm1") == "ACTIVE"
    site.boot("vm2")
    assert servers_by_cell(site) == ["nova 2", "nova_cell0 0"]
    return "kolla-ansible deploys, deploys again and upgrades; a server of before lives on"


def image_built(site: Site) -> None:
    """The steps of the Dockerfiles of nova-base and of the images that are made from it."""
    base, own = f"{IMAGES}/base", f"{IMAGES}/nova"
    site.machine.ok(f"""set -e
        groupadd -f kolla; usermod -a -G kolla nova; install -d -o nova -g nova /var/lib/nova
        cp -r /root/nova /nova
        {VENV}/bin/pip install -q /nova
        mkdir -p /etc/nova; cp -r /nova/etc/nova/* /etc/nova/
        cp {VENV}/etc/pycadf/nova_api_audit_map.conf /etc/nova/
        sed -i 's|^exec_dirs.*|exec_dirs={VENV}/bin,/sbin,/usr/sbin,/bin,/usr/bin,/usr/local/bin,/usr/local/sbin|g' \\
            /etc/nova/rootwrap.conf
        mv /etc/nova /etc/nova.image; mkdir /etc/nova; touch /run_command; mkdir -p /etc/kolla/defaults
        install -m 0440 {own}/nova-base/nova_sudoers /etc/sudoers.d/kolla_nova_sudoers
        install -m 0440 {base}/sudoers /etc/sudoers
        cd {base}; for name in set_configs:kolla_set_configs start:kolla_start copy_cacerts:kolla_copy_cacerts \\
            install_projects:kolla_install_projects; do
            install -m 0755 ${{name%%:*}}.* /usr/local/bin/${{name##*:}}; done
        install -m 0755 healthcheck_* /usr/local/bin/
        install -m 0644 {own}/nova-base/extend_start.sh /usr/local/bin/kolla_extend_start
        touch /usr/local/bin/kolla_nova_extend_start; mkdir -p /usr/local/share/kolla
        cd {own}; for kind in nova-api nova-conductor nova-compute; do
            install -m 0644 $kind/extend_start.sh /usr/local/share/kolla/$kind.sh; done
        """, MADE_S)


def configured(site: Site, setup: Setup) -> None:
    """The engine, an inventory of one machine, and what an operator writes into globals.yml and passwords.yml."""
    password = site.password("admin")
    site.sql(f"CREATE USER IF NOT EXISTS 'root'@'%' IDENTIFIED BY '{password}';"
             "GRANT ALL PRIVILEGES ON *.* TO 'root'@'%' WITH GRANT OPTION;")
    given = {**GLOBALS, **setup.options, "rabbitmq_port": site.broker_address.rpartition(":")[2],
             "rabbitmq_user": "nova", "database_port": site.database_address.rpartition(":")[2], "om_rpc_vhost": "nova"}
    site.write("/etc/kolla/globals.yml", "".join(f'{key}: "{value}"\n' for key, value in given.items()))
    site.write("/etc/openstack/clouds.yaml", CLOUDS.format(keystone=site.url("keystone")))
    own = {"keystone_admin_password": password, "database_password": password,
           "rabbitmq_password": site.password("rabbit-nova"), "glance_keystone_password": site.password("glance")}
    changes = "; ".join(f"s|^{name}:.*|{name}: {value}|" for name, value in own.items())
    site.machine.ok(f"""set -e
        cp {JUDGE}/share/kolla-ansible/etc_examples/kolla/passwords.yml /etc/kolla/
        {JUDGE}/bin/kolla-genpwd -p /etc/kolla/passwords.yml; sed -i '{changes}' /etc/kolla/passwords.yml
        mkdir -p /usr/local/lib/played; cp {PARTS}/engine.py /usr/local/lib/played/
        install -m 0755 {PARTS}/docker /usr/local/bin/docker
        echo --- > {ROLES}/roles/module-load/tasks/main.yml
        cp {PARTS}/kolla_*.py {ROLES}/library/
        printf 'auth_unix_rw = "none"\\nauth_tcp = "none"\\n' >> /etc/libvirt/libvirtd.conf
        systemctl stop libvirtd libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket || true
        systemctl start libvirtd-tcp.socket libvirtd.socket
        """)


def played(site: Site, action: str) -> str:
    """``kolla-ansible deploy`` or ``upgrade``, of nova alone."""
    said = site.machine.run(f"export PATH={JUDGE}/bin:$PATH ANSIBLE_NOCOLOR=1; "
                            f"kolla-ansible {action} --configdir /etc/kolla -i {ROLES}/inventory/all-in-one "
                            "--tags nova 2>&1", PLAY_S)
    assert said.status == 0, f"{action}: {said.text[-6000:]}\n{logs(site)}"
    return said.text


def healthy(site: Site, setup: Setup) -> None:
    """`kolla-ansible check`: each container runs, and its health check passes."""
    for name in setup.containers:
        if name.endswith("conductor"):
            site.wait_for(f"docker exec {name} healthcheck_port nova-conductor "
                          f"{site.broker_address.rpartition(':')[2]} && echo well", "well")
        assert int(site.machine.ok(f"docker inspect -f '{{{{ .State.Pid }}}}' {name}"))
    played(site, "check")


def pids(site: Site, setup: Setup) -> dict[str, str]:
    return {name: site.machine.ok(f"docker inspect {name}").strip() for name in setup.containers}


def servers_by_cell(site: Site) -> list[str]:
    """Databases of cells, each with the number of its servers."""
    return [f"{name} {site.sql(f'SELECT COUNT(*) FROM {name}.servers WHERE deleted = 0').strip()}"
            for name in ("nova", "nova_cell0")]


def logs(site: Site) -> str:
    """For whoever reads why it failed."""
    return site.machine.run("tail -n 30 /var/lib/docker/volumes/kolla_logs/nova/*.log; "
                            "journalctl --no-pager -n 60").text

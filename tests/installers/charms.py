"""The Juju charms nova-cloud-controller and nova-compute: their hooks, played on one machine, install our packages from
a repository. The charms are in no registry: what they install, render and call is data here.

The unit of nova-compute is another machine in truth: it has an /etc/nova of its own.
"""

from __future__ import annotations

import re
import uuid

from tests.fresh import layers, trees
from tests.installers import debian_packaging
from tests.installers.debian_packaging import OURS
from tests.installers.site import READY_S, Options, Site, rendered

APT = ("DEBIAN_FRONTEND=noninteractive apt-get --assume-yes --option=Dpkg::Options::=--force-confold")
APT_S = 1200.0
REPOSITORY, COMPUTES_ETC = "/srv/repository", "/etc/nova.compute"
BESIDE = "apt-utils curl sudo apache2 haproxy libapache2-mod-wsgi-py3 genisoimage novnc"
CONTROLLER = "apache2 haproxy libapache2-mod-wsgi-py3 python3-nova nova-api-os-compute nova-conductor nova-scheduler " \
             "nova-novncproxy"
COMPUTE = "nova-compute nova-compute-qemu python3-nova libvirt-daemon-system genisoimage"
#: They watch these units, and restart those of them whose files they changed.
CONTROLLERS = ("nova-conductor", "nova-scheduler", "nova-novncproxy", "apache2", "haproxy")
COMPUTES = ("nova-compute",)
#: The API is behind HAProxy: Apache's port is 10 lower.
PUBLIC, APACHE = 8774, 8764
#: Of 20,000 connections fewer: the machine may not open so many files.
HAPROXY = f"""global
    maxconn 200
    user haproxy
    group haproxy
defaults
    mode http
    timeout connect 9000
    timeout client 90000
    timeout server 90000
    retries 3
frontend tcp-in_nova-api-os-compute
    bind *:{PUBLIC}
    default_backend nova-api-os-compute
backend nova-api-os-compute
    balance leastconn
    server nova-cloud-controller-0 127.0.0.1:{APACHE} check
"""
APACHE_SITE = f"""Listen {APACHE}
<VirtualHost *:{APACHE}>
    WSGIDaemonProcess nova-api processes=2 threads=1 user=nova group=nova display-name=%{{GROUP}}
    WSGIProcessGroup nova-api
    WSGIScriptAlias / /usr/bin/nova-api-wsgi
    WSGIApplicationGroup %{{GLOBAL}}
    WSGIPassAuthorization On
    ErrorLog /var/log/apache2/nova-api_error.log
    <Directory /usr/bin>
        Require all granted
    </Directory>
</VirtualHost>
"""
#: Hooks run `sudo nova-manage`; codes that they go on with.
MANAGE = "sudo nova-manage"


def tree() -> layers.Made:
    """Our packages, and what apt would fetch beside them."""
    command = f"{APT} update && {APT} install --no-install-recommends {BESIDE} && systemctl disable apache2 haproxy"
    return trees.prepared("charms", command, debian_packaging.tree())


def story(site: Site) -> str:
    origin(site)
    units = Units(site)
    units.installed()
    units.config_changed()
    units.databases_migrated()
    units.started()
    units.compute_joined()
    healthy(site)
    site.boot("vm1")
    before = pids(site)
    units.config_changed()
    units.databases_migrated()
    units.restarted_where_changed()
    units.compute_joined()
    assert pids(site) == before and site.status("vm1") == "ACTIVE"
    units.upgraded()
    healthy(site)
    assert site.status("vm1") == "ACTIVE"
    site.boot("vm2")
    return "hooks of the charms install, run again and upgrade; a server of before lives on"


def origin(site: Site) -> None:
    """The option ``openstack-origin``: a repository with our packages."""
    site.machine.ok(f"""cd {OURS} && apt-ftparchive packages . > Packages && mv {OURS} {REPOSITORY} &&
        echo 'deb [trusted=yes] file:{REPOSITORY} ./' > /etc/apt/sources.list.d/cloud.list""")


class Units:
    """nova-cloud-controller/0, the leader, and nova-compute/0: one method a hook."""

    def __init__(self, site: Site) -> None:
        self.site, self.machine = site, site.machine
        self.urls = {name: site.database(name) for name in ("nova_api", "nova", "nova_cell0")}
        self.credentials = {"auth_type": "password", "auth_url": site.url("keystone"), "username": "nova",
                            "project_name": "service", "project_domain_name": "Default", "user_domain_name": "Default",
                            "password": site.password("nova")}
        self._changed: set[str] = set()
        self._hashes: dict[str, str] = {}

    # --- install ------------------------------------------------------------------------------------------------------
    def installed(self) -> None:
        self.machine.ok(f"apt-get --assume-yes update && {APT} install {CONTROLLER} && {APT} install {COMPUTE}", APT_S)
        origin = self.machine.ok("dpkg-query -W -f '${binary:Package} ${Version}\\n' 'nova-*' python3-nova")
        versions = [line.split()[1] for line in origin.splitlines() if len(line.split()) == 2]
        assert len(versions) > 8 and all(version.startswith("10:") for version in versions), origin

    # --- config-changed, and every relation that changes -------------------------------------------------------------
    def config_changed(self) -> None:
        """All files are rendered; what is the same stays."""
        self._render("/etc/nova/nova.conf", rendered(self._controller()), *CONTROLLERS[:3], "apache2",
                     owner="root:nova", mode="0640")
        self._render("/etc/nova/api-paste.ini", self.machine.ok("cat etc/nova/api-paste.ini"), "apache2")
        self._render("/etc/haproxy/haproxy.cfg", HAPROXY, "haproxy")
        self._render("/etc/apache2/sites-available/wsgi-openstack-api.conf", APACHE_SITE, "apache2")
        self.machine.ok("rm -f /etc/apache2/sites-enabled/000-default.conf && a2ensite -q wsgi-openstack-api")
        self._computes_machine()
        self._render(f"{COMPUTES_ETC}/nova.conf", rendered(self._compute()), *COMPUTES, owner="root:nova", mode="0640")

    def _computes_machine(self) -> None:
        """The files that packages brought to its /etc/nova, and units that see it in the place of the controller's."""
        drop_in = f"[Service]\nBindPaths={COMPUTES_ETC}:/etc/nova\n"
        for unit in ("nova-compute", "nova-privileged"):
            self.site.write(f"/etc/systemd/system/{unit}.service.d/machine.conf", drop_in)
        self.machine.ok(f"test -d {COMPUTES_ETC} || cp -a /etc/nova {COMPUTES_ETC}; systemctl daemon-reload")

    def _render(self, path: str, text: str, *services: str, owner: str = "root:root", mode: str = "0644") -> None:
        self.site.write(path, text, owner, mode)
        content = self.machine.ok(f"sha256sum {path}")
        if self._hashes.get(path) != content:
            self._changed |= set(services)
        self._hashes[path] = content

    def _common(self) -> dict[str, dict[str, object]]:
        return {
            "DEFAULT": {
                "verbose": "False", "debug": "False", "logdir": "/var/log/nova", "state_path": "/var/lib/nova",
                "use_syslog": "False", "transport_url": self.site.broker_url, "my_ip": "127.0.0.1",
                "root_helper": "sudo nova-rootwrap /etc/nova/rootwrap.conf", "volumes_path": "/var/lib/nova/volumes",
                "iscsi_helper": "tgtadm", "allow_resize_to_same_host": "True", "use_neutron": "True",
                "network_api_class": "nova.network.neutronv2.api.API", "security_group_api": "neutron"},
            "upgrade_levels": {"compute": "auto"}, "api": {"auth_strategy": "keystone"},
            "oslo_messaging_notifications": {"driver": "messagingv2"}, "oslo_messaging_rabbit": {},
            "keystone_authtoken": {**self.credentials, "signing_dir": "/var/cache/nova", "service_type": "compute",
                                   "service_token_roles": "admin", "service_token_roles_required": "True",
                                   "memcached_servers": "127.0.0.1:11211"},
            "service_user": {**self.credentials, "send_service_user_token": "true"},
            "neutron": {**self.credentials, "url": self.site.url("neutron"), "region_name": "RegionOne"},
            "placement": {**self.credentials, "os_region_name": "RegionOne", "region_name": "RegionOne",
                          "randomize_allocation_candidates": "true"},
            "glance": {"api_servers": self.site.url("glance")},
            "oslo_concurrency": {"lock_path": "/var/lock/nova"}}

    def _controller(self) -> Options:
        common = self._common()
        common["DEFAULT"] |= {
            "osapi_compute_workers": 2, "metadata_workers": 2, "cpu_allocation_ratio": "2.0",
            "ram_allocation_ratio": "0.98", "disk_allocation_ratio": "1.0", "enable_new_services": "True",
            "pointer_model": "ps2mouse", "enabled_apis": "osapi_compute,metadata", "osapi_compute_listen": "0.0.0.0",
            "force_dhcp_release": "True", "use_ipv6": "False"}
        return {
            **common, "api_database": {"connection": self.urls["nova_api"]},
            "database": {"connection": self.urls["nova"]},
            "cinder": {"os_region_name": "RegionOne", "cross_az_attach": "True"},
            "scheduler": {"discover_hosts_in_cells_interval": 30, "workers": 2}, "conductor": {"workers": 2},
            "filter_scheduler": {"enabled_filters": "ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,"
                                 "ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter"},
            "vnc": {"enabled": "True", "novncproxy_port": 6080, "novncproxy_host": "0.0.0.0"},
            "quota": {"instances": 40, "count_usage_from_placement": "False"},
            "oslo_middleware": {"enable_proxy_headers_parsing": "true"},
            "wsgi": {"api_paste_config": "/etc/nova/api-paste.ini"}}

    def _compute(self) -> Options:
        common = self._common()
        common["DEFAULT"] |= {"instances_path": "/var/lib/nova/instances", "reserved_host_memory_mb": 512,
                              "force_raw_images": "True", "block_device_allocate_retries": 300}
        return {
            **common, "vnc": {"enabled": "True", "server_listen": "127.0.0.1",
                              "server_proxyclient_address": "127.0.0.1", "novncproxy_base_url": "http://127.0.0.1:6080/vnc_auto.html"},
            "libvirt": {"cpu_mode": "none", "rbd_user": "", "rbd_secret_uuid": "", "live_migration_uri":
                        "qemu+ssh://%s/system", "disk_cachemodes": "", "virt_type": "qemu"},
            "workarounds": {"disable_libvirt_livesnapshot": "False"}}

    # --- shared-db-relation-changed, amqp-relation-changed ------------------------------------------------------------
    def databases_migrated(self) -> None:
        """The leader's. create_cell ends with 2 where the cell is there; URLs are told again after each change."""
        self._manage("api_db sync")
        self._manage("cell_v2 map_cell0")
        self._manage("cell_v2 create_cell --name=cell1 --verbose", (0, 2))
        self._manage("db sync")
        self._manage("db online_data_migrations")
        cells = self.cells()
        self._manage(f"cell_v2 update_cell --cell_uuid {cells['cell1']['uuid']}")
        self._manage(f"cell_v2 update_cell --cell_uuid {cells['cell0']['uuid']} --transport-url "
                     f"'{cells['cell0']['amqp']}' --database_connection '{self.urls['nova_cell0']}'")

    def cells(self) -> dict[str, dict[str, str]]:
        """As the charm reads list_cells: rows whose second column is a UUID."""
        found = {}
        for line in self._manage("cell_v2 list_cells --verbose").split("\n"):
            columns = [column.strip() for column in line.split("|")]
            try:
                uuid.UUID(columns[2])
            except (ValueError, IndexError):
                continue
            found[columns[1]] = {"uuid": columns[2], "amqp": columns[3], "db": columns[4]}
        assert set(found) == {"cell0", "cell1"}
        return found

    def _manage(self, words: str, good: tuple[int, ...] = (0,)) -> str:
        said = self.machine.run(f"{MANAGE} {words}", 300)
        assert said.status in good, f"{words}: {said.status}\n{said.last_words}"
        return said.text

    # --- what follows -------------------------------------------------------------------------------------------------
    def started(self) -> None:
        self.machine.ok(f"systemctl enable {' '.join((*CONTROLLERS, *COMPUTES))}")
        self.restarted_where_changed()

    def restarted_where_changed(self) -> None:
        for service in sorted(self._changed):
            self.machine.ok(f"systemctl restart {service}", 120)
        self._changed.clear()

    def compute_joined(self) -> None:
        """cloud-compute-relation-changed, once the compute service is in the list."""
        self.site.wait_for(". /srv/neighbours/openrc-admin; openstack compute service list -f value -c Binary -c State",
                           "nova-compute up", READY_S)
        self._manage(f"cell_v2 discover_hosts --cell_uuid {self.cells()['cell1']['uuid']} --verbose")

    def upgraded(self) -> None:
        """The action openstack-upgrade: packages, files, tables, and all services anew. The release is the same."""
        names = self.machine.ok("dpkg-query -W -f '${binary:Package} ' 'nova-*' python3-nova")
        self.machine.ok(f"{APT} update && {APT} --option Dpkg::Options::=--force-confdef dist-upgrade && "
                        f"for name in {names}; do dpkg -s $name >/dev/null 2>&1 && echo $name; done | "
                        f"xargs {APT.split(' ', 1)[1]} install --reinstall", APT_S)
        self.config_changed()
        self.databases_migrated()
        for service in (*CONTROLLERS[:3], "apache2", *COMPUTES):
            self.machine.ok(f"systemctl restart {service}", 120)


def healthy(site: Site) -> None:
    """Each unit runs, as NRPE asks; HAProxy's back end is up; the processes have the charm's display name."""
    for unit in (*CONTROLLERS, *COMPUTES):
        assert site.machine.ok(f"systemctl is-active {unit}").strip() == "active"
    site.wait_for(f"curl -s http://127.0.0.1:{PUBLIC}/", "v2.1")
    site.wait_for(". /srv/neighbours/openrc-admin; openstack compute service list -f value -c Binary -c State",
                  "nova-compute up", READY_S)
    assert re.search(r"\(wsgi:nova-api\)", site.machine.ok("ps -e -o args"))


def pids(site: Site) -> str:
    return "".join(site.machine.ok(f"systemctl show -P MainPID {unit}") for unit in (*CONTROLLERS, *COMPUTES))

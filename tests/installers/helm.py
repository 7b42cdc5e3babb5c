"""openstack-helm: the jobs and pods of its chart nova install this. The chart is in no registry: what it mounts and runs is
data here.

Pods are played (``pods``), with the network of the machine: of what listens on a port, the old one ends first.
"""

from __future__ import annotations

import re
import shlex
import time
from dataclasses import replace

from tests.fresh import layers, trees
from tests.fresh.machine import Machine, Plan
from tests.installers.pods import Pod, Pods
from tests.installers.site import READY_S, Options, Site, rendered

IMAGE, CONFIG, MADE_S = "/var/lib/openstack", "/srv/chart", 900.0
PACKAGES = "sudo curl gcc libc6-dev libvirt-dev pkg-config python3-dev python3-venv genisoimage dosfstools bubblewrap"
CELL0 = "nova_cell0"
KEYSTONE = {"auth_type": "password", "region_name": "RegionOne", "project_domain_name": "Default",
            "user_domain_name": "Default"}
#: Of conf.logging, written to /etc/nova/logging.conf.
LOGGING: Options = {
    "loggers": {"keys": "root, nova"}, "handlers": {"keys": "stdout, stderr, null"},
    "formatters": {"keys": "context, default"},
    "logger_root": {"level": "WARNING", "handlers": "null"},
    "logger_nova": {"handlers": "stdout", "level": "INFO", "qualname": "nova"},
    "handler_null": {"class": "logging.NullHandler", "formatter": "default", "args": "()"},
    "handler_stdout": {"class": "StreamHandler", "args": "(sys.stdout,)", "formatter": "context"},
    "handler_stderr": {"class": "StreamHandler", "args": "(sys.stderr,)", "formatter": "context"},
    "formatter_context": {"class": "oslo_log.formatters.ContextFormatter", "datefmt": "%Y-%m-%d %H:%M:%S"},
    "formatter_default": {"format": "%(message)s", "datefmt": "%Y-%m-%d %H:%M:%S"}}
UWSGI = {"add-header": "Connection: close", "buffer-size": 65535, "die-on-term": "true", "enable-threads": "true",
         "exit-on-reload": "false", "hook-master-start": "unix_signal:15 gracefully_kill_them_all", "lazy-apps": "true",
         "log-x-forwarded-for": "true", "master": "true", "processes": 1, "thunder-lock": "true", "worker-reload-mercy": 80}
#: What a daemon is started with in each pod; the second kind has files that containers before it wrote.
PLAIN = "--config-file /etc/nova/nova.conf --config-dir /etc/nova/nova.conf.d"
WITH_SHARED = ("--config-file /etc/nova/nova.conf {} --config-dir /etc/nova/nova.conf.d")
DB_SYNC = """
nova-manage api_db sync
nova-manage cell_v2 map_cell0
nova-manage cell_v2 list_cells | grep -q " cell1 " || nova-manage cell_v2 create_cell --name=cell1 --verbose
CELL0_ID=$(nova-manage cell_v2 list_cells | awk -F '|' '/ cell0 / { print $3 }' | tr -d ' ')
CELL1_ID=$(nova-manage cell_v2 list_cells | awk -F '|' '/ cell1 / { print $3 }' | tr -d ' ')
CELL0_TRANSPORT=$(nova-manage cell_v2 list_cells | awk -F '|' '/ cell0 / { print $4 }' | tr -d ' ')
nova-manage cell_v2 update_cell --cell_uuid="$CELL0_ID" --name=cell0 --transport-url="$CELL0_TRANSPORT" \\
    --database_connection="$DB_CONNECTION_CELL0"
nova-manage cell_v2 update_cell --cell_uuid="$CELL1_ID" --name=cell1 --transport-url="$TRANSPORT_URL" \\
    --database_connection="$DB_CONNECTION"
nova-manage db sync
nova-manage db online_data_migrations
"""
#: As the chart's releases did that still asked for a version, which is a release of upstream's.
OLD_QUESTION = "nova-manage --version 2>&1 | grep -Eo '[0-9]+[.][0-9]+[.][0-9]+'"
CELL_SETUP = """
until openstack compute service list --service nova-compute -f value -c State | grep -q '^up$'; do sleep 2; done
nova-manage cell_v2 discover_hosts --verbose
openstack compute service list
"""
SERVICE_CLEANER = """
openstack compute service list -f value -c ID -c Binary -c State |
    awk '$2 != "nova-compute" && $3 == "down" { print $1 }' |
    while read -r id; do openstack compute service delete "$id"; done
"""
HYPERVISOR = """
printf '[DEFAULT]\\nmy_ip = 127.0.0.1\\n' > /tmp/pod-shared/nova-hypervisor.conf
printf '[vnc]\\nserver_proxyclient_address = 127.0.0.1\\nserver_listen = 127.0.0.1\\n' > /tmp/pod-shared/nova-console.conf
printf '[libvirt]\\nlive_migration_inbound_addr = 127.0.0.1\\n' > /tmp/pod-shared/nova-libvirt.conf
"""
COMPUTE_FILES = " ".join(f"--config-file /tmp/pod-shared/nova-{name}.conf" for name in ("console", "libvirt", "hypervisor"))
CONSOLE = "printf '[vnc]\\nnovncproxy_host = 0.0.0.0\\n' > /tmp/pod-shared/nova-vnc.conf"
#: The probe of conductors, schedulers and computes: a call of the method ping on the daemon's own topic and host.
PROBE = """
import socket, sys
from oslo_config import cfg
import oslo_messaging as messaging
conf = cfg.CONF
conf(["--config-file", sys.argv[1]], project="nova")
messaging.set_transport_defaults("nova")
target = messaging.Target(topic=sys.argv[2], server=socket.gethostname(), namespace="baseapi", version="1.1")
client = messaging.get_rpc_client(messaging.get_rpc_transport(conf), target, timeout=20, retry=2)
try:
    client.call({}, "ping", arg="probe")
except messaging.MessagingTimeout:
    sys.exit(1)
except messaging.RemoteError as error:
    sys.exit("does not support" not in str(error).lower() and "UnsupportedVersion" not in str(error))
"""
PROBED = {"nova-conductor": "conductor", "nova-scheduler": "scheduler", "nova-compute": "compute"}
PORTS = {"nova-api-osapi": 8774, "nova-api-metadata": 8775, "nova-novncproxy": 6080}


def tree() -> layers.Made:
    """What the machine that plays needs, and the packages of the images; nothing of nova."""
    command = (f"apt-get -q -y update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "
               f"{PACKAGES} && python3 -m venv {IMAGE} && {IMAGE}/bin/pip install -q uwsgi python-openstackclient libvirt-python")
    below = trees.with_neighbours()[1:]

    def write(target: layers.Path) -> None:
        with Machine((*layers.checkout(), *below), Plan(pip_cache=True), upper=target) as machine:
            machine.ok(command, MADE_S)

    return (*layers.checkout(), *layers.written("helm", command, below, write))


def story(site: Site) -> str:
    image_built(site)
    pods, chart = Pods(site), Chart(site)
    deployed(pods, chart)
    healthy(pods)
    site.boot("vm1")
    before = pids(pods)
    jobs_run(pods, chart)  # `helm upgrade` with the same values: pods stay
    assert pids(pods) == before and site.status("vm1") == "ACTIVE"
    assert len(cells(site)) == 2
    deployed(pods, chart)  # of the next release
    healthy(pods)
    cleaned(pods, chart)
    assert site.status("vm1") == "ACTIVE"
    site.boot("vm2")
    return "openstack-helm's jobs and pods install, install again and roll; a server of before lives on"


# --- the image and the chart's files --------------------------------------------------------------------------------------
def image_built(site: Site) -> None:
    """As loci builds it: from source, into a virtual environment."""
    site.machine.ok(f"cp -r /root/nova /tmp/source && {IMAGE}/bin/pip install -q /tmp/source", MADE_S)


class Chart:
    """Values of an operator, and what is rendered of them."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.urls = {name: site.database(name) for name in ("nova_api", "nova", CELL0)}
        password = {name: site.password(name) for name in ("nova", "glance")}
        self.credentials = {**KEYSTONE, "auth_url": site.url("keystone"), "username": "nova", "project_name": "service",
                            "password": password["nova"]}
        for path, text in self._files().items():
            site.write(f"{CONFIG}/{path}", text, mode="0444")
        for folder in ("nova.conf.d", "rootwrap.d"):
            site.machine.ok(f"mkdir -p {CONFIG}/{folder}")
        site.machine.ok(f"cp etc/nova/api-paste.ini etc/nova/rootwrap.conf {CONFIG}/ && "
                        f"cp etc/nova/rootwrap.d/compute.filters {CONFIG}/rootwrap.d/")

    def _files(self) -> dict[str, str]:
        databases = {"database": {"connection": self.urls["nova"], "max_retries": -1},
                     "api_database": {"connection": self.urls["nova_api"], "max_retries": -1},
                     "cell0_database": {"connection": self.urls[CELL0], "max_retries": -1}}
        options = self._options()
        return {
            "nova.conf": rendered({**options, **databases}), "nova-compute.conf": rendered(options),
            "logging.conf": rendered(LOGGING), "policy.yaml": "{}\n",
            "nova-api-uwsgi.ini": self._uwsgi("0.0.0.0:8774", "nova.wsgi.osapi_compute:application", "nova-api"),
            "nova-metadata-uwsgi.ini": self._uwsgi("0.0.0.0:8775", "nova.wsgi.metadata:application", "nova-metadata"),
            "health-probe.py": PROBE}

    def _options(self) -> Options:
        return {
            "DEFAULT": {
                "log_config_append": "/etc/nova/logging.conf", "default_ephemeral_format": "ext4",
                "ram_allocation_ratio": 1.0, "disk_allocation_ratio": 1.0, "cpu_allocation_ratio": 3.0,
                "state_path": "/var/lib/nova", "osapi_compute_listen": "0.0.0.0", "osapi_compute_listen_port": 8774,
                "osapi_compute_workers": 1, "metadata_workers": 1, "metadata_listen_port": 8775,
                "compute_driver": "libvirt.LibvirtDriver", "my_ip": "127.0.0.1", "instance_usage_audit": "true",
                "instance_usage_audit_period": "hour", "resume_guests_state_on_host_boot": "true",
                "transport_url": self.site.broker_url},
            "vnc": {"auth_schemes": "none", "novncproxy_base_url": "http://127.0.0.1:6080/vnc_auto.html",
                    "novncproxy_port": 6080},
            "conductor": {"workers": 1}, "oslo_policy": {"policy_file": "/etc/nova/policy.yaml"},
            "oslo_concurrency": {"lock_path": "/var/lib/nova/tmp"}, "oslo_middleware": {"enable_proxy_headers_parsing": "true"},
            "oslo_messaging_notifications": {"driver": "messagingv2"},
            "oslo_messaging_rabbit": {"rabbit_ha_queues": "false", "rabbit_quorum_queues": "true",
                                      "rabbit_transient_quorum_queue": "false", "use_queue_manager": "false"},
            "scheduler": {"max_attempts": 10, "discover_hosts_in_cells_interval": -1, "workers": 1},
            "glance": {"num_retries": 3, "api_servers": self.site.url("glance")},
            "cinder": {"catalog_info": "volumev3::internalURL"},
            "neutron": {**self.credentials, "metadata_proxy_shared_secret": "of-the-proxy", "service_metadata_proxy": "true"},
            "placement": self.credentials, "service_user": {**self.credentials, "send_service_user_token": "true"},
            "keystone_authtoken": {**self.credentials, "auth_version": "v3", "service_token_roles": "service",
                                   "service_token_roles_required": "true", "service_type": "compute",
                                   "memcached_servers": "127.0.0.1:11211"},
            "libvirt": {"connection_uri": "qemu+unix:///system?socket=/run/libvirt/libvirt-sock", "images_type": "qcow2",
                        "virt_type": "qemu", "cpu_mode": "none", "disk_cachemodes": "network=writeback",
                        "hw_disk_discard": "unmap"},
            "upgrade_levels": {"compute": "auto"}, "cache": {"enabled": "true", "backend": "dogpile.cache.memcached",
                                                             "memcache_servers": "127.0.0.1:11211"},
            "wsgi": {"api_paste_config": "/etc/nova/api-paste.ini"}}

    def _uwsgi(self, address: str, module: str, name: str) -> str:
        return rendered({"uwsgi": {**UWSGI, "http-socket": address, "module": module, "procname-prefix-spaced": f"{name}:",
                                   "route-user-agent": "^kube-probe.* donotlog:"}})

    def mounted(self, config: str = "nova.conf") -> dict[str, str]:
        """A pod's /etc/nova."""
        names = ("logging.conf", "api-paste.ini", "policy.yaml", "rootwrap.conf", "rootwrap.d", "nova.conf.d",
                 "nova-api-uwsgi.ini", "nova-metadata-uwsgi.ini")
        return {"/etc/nova/nova.conf": f"{CONFIG}/{config}", **{f"/etc/nova/{name}": f"{CONFIG}/{name}" for name in names}}

    def pod(self, name: str, script: str) -> Pod:
        return Pod(name, script, self.mounted())

    def admin(self) -> dict[str, str]:
        """What is in the environment of jobs that ask the API."""
        return {"OS_AUTH_URL": f"{self.site.url('keystone')}/v3", "OS_USERNAME": "admin", "OS_PROJECT_NAME": "admin",
                "OS_PASSWORD": self.site.password("admin"), "OS_REGION_NAME": "RegionOne", "OS_IDENTITY_API_VERSION": "3",
                "OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default"}


# --- what Kubernetes does of it -------------------------------------------------------------------------------------------
def deployed(pods: Pods, chart: Chart) -> None:
    """Deployments and the computes' daemon set wait for the database's job, and the last job for a compute."""
    database_synced(pods, chart)
    pods.roll(chart.pod("nova-conductor", f"exec nova-conductor {PLAIN}"))
    pods.roll(chart.pod("nova-scheduler", f"exec nova-scheduler {PLAIN}"))
    pods.roll(chart.pod("nova-api-osapi", "exec uwsgi --ini /etc/nova/nova-api-uwsgi.ini"), first_out=True)
    pods.roll(chart.pod("nova-api-metadata", "exec uwsgi --ini /etc/nova/nova-metadata-uwsgi.ini"), first_out=True)
    console = chart.pod("nova-novncproxy", f"exec nova-novncproxy {WITH_SHARED.format('--config-file /tmp/pod-shared/nova-vnc.conf')}")
    pods.roll(replace(console, before=CONSOLE), first_out=True)
    pods.roll(compute(chart), first_out=True)
    cell_set_up(pods, chart)


def jobs_run(pods: Pods, chart: Chart) -> None:
    database_synced(pods, chart)
    cell_set_up(pods, chart)


def database_synced(pods: Pods, chart: Chart) -> None:
    urls = {"TRANSPORT_URL": chart.site.broker_url, "DB_CONNECTION": chart.urls["nova"],
            "DB_CONNECTION_API": chart.urls["nova_api"], "DB_CONNECTION_CELL0": chart.urls[CELL0]}
    pods.job(replace(chart.pod("nova-db-sync", DB_SYNC), environment=urls))
    assert int(pods.job(chart.pod("nova-db-sync-old", OLD_QUESTION)).split(".")[0]) > 14


def cell_set_up(pods: Pods, chart: Chart) -> None:
    said = pods.job(replace(chart.pod("nova-cell-setup", CELL_SETUP), environment=chart.admin()))
    assert "| up " in said


def compute(chart: Chart) -> Pod:
    """One a host, with the host's name, network, and /var/lib/nova."""
    return Pod("nova-compute", f"exec nova-compute {WITH_SHARED.format(COMPUTE_FILES)}", chart.mounted("nova-compute.conf"),
               before=f"mkdir -p /var/lib/nova\nchown nova /var/lib/nova\n{HYPERVISOR}", on_host=True, user="root")


def cleaned(pods: Pods, chart: Chart) -> None:
    """The hourly job deletes what rolled pods left in the list of services."""
    site = chart.site
    states = "compute service list -f value -c Binary -c State"
    site.wait_for(f". /srv/neighbours/openrc-admin; openstack {states}", "nova-conductor down", READY_S)
    pods.job(replace(chart.pod("nova-service-cleaner", SERVICE_CLEANER), environment=chart.admin()))
    left = site.openstack(states).split("\n")
    assert "nova-conductor down" not in left and "nova-conductor up" in left and "nova-compute up" in left


# --- what is looked at ----------------------------------------------------------------------------------------------------
def healthy(pods: Pods) -> None:
    """Probes: a ping over the broker, GET / as kubelet asks, a connection."""
    site = pods.site
    for port in (PORTS["nova-api-osapi"], PORTS["nova-api-metadata"]):
        site.wait_for(f"curl -s -o /dev/null -w '%{{http_code}}' -A kube-probe/1.30 http://127.0.0.1:{port}/", "^[23]")
    site.wait_for(f"timeout 2 bash -c '</dev/tcp/127.0.0.1/{PORTS['nova-novncproxy']}' && echo well", "well")
    for name, topic in PROBED.items():
        config = "nova-compute.conf" if name == "nova-compute" else "nova.conf"
        probe = f"python {CONFIG}/health-probe.py {CONFIG}/{config} {topic}"
        deadline = time.monotonic() + READY_S
        while pods.inside(name, probe):
            assert time.monotonic() < deadline, f"{name}: {pods.logs(name)[-3000:]}"
        port = site.broker_address.rpartition(":")[2]  # the probe looks for the process's connections, too
        assert f'"{name}"' in site.machine.ok(f"ss -Htnp state established dport = :{port}")
    assert re.search(r"^\d{4}-\d\d-\d\d [\d:.]+ \d+ INFO nova", pods.logs("nova-conductor"), re.M)  # logging.conf's format


def pids(pods: Pods) -> dict[str, int]:
    return {name: pods.pid(name) for name in (*PROBED, *PORTS)}


def cells(site: Site) -> list[str]:
    command = shlex.quote(f"SELECT name FROM nova_api.cell_mappings")
    return site.machine.ok(f"mariadb --no-defaults -N --socket=/srv/neighbours/data/mariadb/mariadb.sock -u root -e {command}"
                           ).split()

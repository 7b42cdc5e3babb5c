"""openstack-helm: the jobs and pods of its chart nova install this.

Pods are played (``pods``), with the network of the machine: of what listens on a port, the old one ends first.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace

from tests.fresh import layers, trees
from tests.installers.helm_files import CELL0, CONFIG, Chart
from tests.installers.pods import Pod, Pods
from tests.installers.site import READY_S, Site

IMAGE, MADE_S = "/var/lib/openstack", 900.0
IN_IMAGE = "uwsgi python-openstackclient libvirt-python"
PACKAGES = "sudo curl gcc libc6-dev libvirt-dev pkg-config python3-dev python3-venv genisoimage dosfstools bubblewrap"
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
printf '[vnc]\\nserver_proxyclient_address = 127.0.0.1\\nserver_listen = 127.0.0.1\\n' > \\
    /tmp/pod-shared/nova-console.conf
printf '[libvirt]\\nlive_migration_inbound_addr = 127.0.0.1\\n' > /tmp/pod-shared/nova-libvirt.conf
"""
COMPUTE_FILES = " ".join(f"--config-file /tmp/pod-shared/nova-{name}.conf"
                         for name in ("console", "libvirt", "hypervisor"))
CONSOLE_FILE = "--config-file /tmp/pod-shared/nova-vnc.conf"
CONSOLE = "printf '[vnc]\\nnovncproxy_host = 0.0.0.0\\n' > /tmp/pod-shared/nova-vnc.conf"
PROBED = {"nova-conductor": "conductor", "nova-scheduler": "scheduler", "nova-compute": "compute"}
PORTS = {"nova-api-osapi": 8774, "nova-api-metadata": 8775, "nova-novncproxy": 6080}


def tree() -> layers.Made:
    """What the machine that plays needs, and the packages of the images; nothing of nova."""
    command = (f"apt-get -q -y update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "
               f"{PACKAGES} && python3 -m venv {IMAGE} && {IMAGE}/bin/pip install -q {IN_IMAGE}")
    return trees.prepared("helm", command)


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


# --- the image --------------------------------------------------------------------------------------------------------
def image_built(site: Site) -> None:
    """As loci builds it: from source, into a virtual environment."""
    site.machine.ok(f"cp -r /root/nova /tmp/source && {IMAGE}/bin/pip install -q /tmp/source", MADE_S)


# --- what Kubernetes does of it ---------------------------------------------------------------------------------------
def deployed(pods: Pods, chart: Chart) -> None:
    """Deployments and the computes' daemon set wait for the database's job, and the last job for a compute."""
    database_synced(pods, chart)
    pods.roll(chart.pod("nova-conductor", f"exec nova-conductor {PLAIN}"))
    pods.roll(chart.pod("nova-scheduler", f"exec nova-scheduler {PLAIN}"))
    pods.roll(chart.pod("nova-api-osapi", "exec uwsgi --ini /etc/nova/nova-api-uwsgi.ini"), first_out=True)
    pods.roll(chart.pod("nova-api-metadata", "exec uwsgi --ini /etc/nova/nova-metadata-uwsgi.ini"), first_out=True)
    console = chart.pod("nova-novncproxy", f"exec nova-novncproxy {WITH_SHARED.format(CONSOLE_FILE)}")
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
    return Pod("nova-compute", f"exec nova-compute {WITH_SHARED.format(COMPUTE_FILES)}",
               chart.mounted("nova-compute.conf"), user="root", on_host=True,
               before=f"mkdir -p /var/lib/nova\nchown nova /var/lib/nova\n{HYPERVISOR}")


def cleaned(pods: Pods, chart: Chart) -> None:
    """The hourly job deletes what rolled pods left in the list of services."""
    site = chart.site
    states = "compute service list -f value -c Binary -c State"
    site.wait_for(f". /srv/neighbours/openrc-admin; openstack {states}", "nova-conductor down", READY_S)
    pods.job(replace(chart.pod("nova-service-cleaner", SERVICE_CLEANER), environment=chart.admin()))
    left = site.openstack(states).split("\n")
    assert "nova-conductor down" not in left and "nova-conductor up" in left and "nova-compute up" in left


# --- what is looked at ------------------------------------------------------------------------------------------------
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
    lines = pods.logs("nova-conductor")
    assert re.search(r"^\d{4}-\d\d-\d\d [\d:.]+ \d+ INFO nova", lines, re.M)  # as logging.conf has it


def pids(pods: Pods) -> dict[str, int]:
    return {name: pods.pid(name) for name in (*PROBED, *PORTS)}


def cells(site: Site) -> list[str]:
    return site.sql("SELECT name FROM nova_api.cell_mappings").split()

"""nova-operator, the control plane in Kubernetes, and edpm-ansible for compute hosts install this: a conductor for each
cell, cell0 with the API's broker, cell1 with a broker's vhost of its own, the APIs under Apache's mod_wsgi.

Pods are played (``pods``), with the network of the machine: of what listens on a port, the old one ends first.
"""

from __future__ import annotations

import datetime
from dataclasses import replace

from tests.fresh import layers, trees
from tests.installers.nova_operator_files import APACHE, LOGS, PORTS, Cell, Plane
from tests.installers.pods import Pod, Pods
from tests.installers.site import READY_S, Site

IMAGE, MADE_S, IDENTITY = "/var/lib/openstack", 900.0, "/var/lib/nova/compute_id"
PACKAGES = ("sudo curl gcc procps apache2 libapache2-mod-wsgi-py3 novnc libc6-dev libvirt-dev pkg-config python3-dev "
            "python3-venv genisoimage dosfstools bubblewrap qemu-utils")
DB_SYNC = """
if [ "$CELL_NAME" = cell0 ]; then nova-manage api_db sync; fi
nova-manage db sync --local_cell
"""
#: Blanks become |, repeats are squeezed; a cell's line begins with its name, and its UUID is the third field.
MAPPING = """
if [ "$CELL_NAME" = cell0 ]; then
    nova-manage cell_v2 map_cell0
    nova-manage cell_v2 update_cell --cell_uuid 00000000-0000-0000-0000-000000000000
    exit 0
fi
uuid=$(nova-manage cell_v2 list_cells | tr ' ' '|' | tr -s '|' | grep "^|$CELL_NAME|" | cut -d '|' -f 3)
if [ -z "$uuid" ]; then
    nova-manage cell_v2 create_cell --name "$CELL_NAME" --verbose
else
    nova-manage cell_v2 update_cell --cell_uuid "$uuid"
fi
"""
DELETION = """
uuid=$(nova-manage cell_v2 list_cells | tr ' ' '|' | tr -s '|' | grep "^|$CELL_NAME|" | cut -d '|' -f 3)
test -z "$uuid" || nova-manage cell_v2 delete_cell --cell_uuid "$uuid"
"""
DISCOVERY = "nova-manage cell_v2 discover_hosts --by-service --verbose"
#: Codes that do not fail the job: 0 and 1 of the first command, 0 and 3 of the second.
PURGE = """
nova-manage db archive_deleted_rows --verbose --until-complete --task-log --max_rows 1000 --before "$BEFORE" \\
    --all-cells || test $? -eq 1
nova-manage db purge --verbose --before "$BEFORE" --all-cells || test $? -eq 3
"""
WEB = f"mkdir -p /tmp/apache\nexec apache2 -DFOREGROUND -f {APACHE}"
CONSOLE = "exec nova-novncproxy --web /usr/share/novnc/"
#: Startup and liveness probes look for the process by its name.
PROBED = {"nova-cell0-conductor": "nova-conductor", "nova-cell1-conductor": "nova-conductor",
          "nova-scheduler": "nova-scheduler", "nova-compute": "nova-compute"}
PAGES = {"nova-api": f":{PORTS['nova-api']}/", "nova-metadata": f":{PORTS['nova-metadata']}/",
         "nova-cell1-novncproxy": f":{PORTS['nova-novncproxy']}/vnc_lite.html"}


def tree() -> layers.Made:
    """What the machine that plays needs, and the packages of the images; nothing of nova."""
    command = (f"apt-get -q -y update && DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends "
               f"{PACKAGES} && systemctl disable apache2 && python3 -m venv --system-site-packages {IMAGE} && "
               f"{IMAGE}/bin/pip install -q libvirt-python")
    return trees.prepared("nova-operator", command)


def story(site: Site) -> str:
    image_built(site)
    pods, plane = Pods(site), Plane(site)
    deployed(pods, plane)
    healthy(pods)
    site.boot("vm1")
    assert servers_by_cell(site, plane) == ["nova_cell0 0", "nova_cell1 1"]
    before = pids(pods)
    jobs_run(pods, plane)  # reconciled with the same values: pods stay
    assert pids(pods) == before and site.status("vm1") == "ACTIVE"
    cell_added_and_removed(pods, plane)
    purged(pods, plane)
    deployed(pods, plane)  # of the next release
    healthy(pods)
    assert site.status("vm1") == "ACTIVE"
    site.boot("vm2")
    assert servers_by_cell(site, plane) == ["nova_cell0 0", "nova_cell1 2"]
    return "nova-operator's jobs and pods install, install again and roll; a cell comes and goes; a server lives on"


# --- the image --------------------------------------------------------------------------------------------------------
def image_built(site: Site) -> None:
    """As the packages leave it: folders of the user nova, who reaches libvirt, and nova-rootwrap by sudo."""
    site.machine.ok(f"cp -r /root/nova /tmp/source && {IMAGE}/bin/pip install -q /tmp/source && "
                    f"ln -sf {IMAGE}/bin/nova-rootwrap {IMAGE}/bin/privsep-helper /usr/bin/ && "
                    f"install -d -o nova -g nova /var/lib/nova {LOGS} && usermod -a -G libvirt nova", MADE_S)
    site.write("/etc/sudoers.d/nova", "Defaults:nova !requiretty\n"
               "nova ALL = (root) NOPASSWD: /usr/bin/nova-rootwrap /etc/nova/rootwrap.conf *\n", mode="0440")


# --- what the operator does -------------------------------------------------------------------------------------------
def deployed(pods: Pods, plane: Plane) -> None:
    """Cells, cell0 first: its databases, its conductor, its record; then the daemons that serve them, and hosts."""
    for cell in plane.cells:
        cell_deployed(pods, plane, cell)
    pods.roll(plane.pod("nova-scheduler", "exec nova-scheduler"))
    pods.roll(plane.pod("nova-api", WEB), first_out=True)
    pods.roll(plane.pod("nova-metadata", WEB), first_out=True)
    pods.roll(plane.pod("nova-cell1-novncproxy", CONSOLE), first_out=True)
    pods.roll(compute(plane), first_out=True)
    discovered(pods, plane)


def cell_deployed(pods: Pods, plane: Plane, cell: Cell) -> None:
    synced(pods, plane, cell)
    pods.roll(plane.pod(f"nova-{cell.name}-conductor", "exec nova-conductor"))
    mapped(pods, plane, cell)


def jobs_run(pods: Pods, plane: Plane) -> None:
    for cell in plane.cells:
        synced(pods, plane, cell)
        mapped(pods, plane, cell)
    discovered(pods, plane)


def synced(pods: Pods, plane: Plane, cell: Cell) -> None:
    pods.job(plane.job(f"nova-{cell.name}-db-sync", DB_SYNC, cell))


def mapped(pods: Pods, plane: Plane, cell: Cell) -> None:
    pods.job(plane.job(f"nova-{cell.name}-cell-mapping", MAPPING, cell))


def discovered(pods: Pods, plane: Plane) -> None:
    """After the hosts are up; the operator looks at the job's exit code alone."""
    site = pods.site
    site.wait_for(". /srv/neighbours/openrc-admin; openstack compute service list --service nova-compute "
                  "-f value -c State", "(?m)^up$", READY_S)
    pods.job(plane.job("nova-cell1-host-discover", DISCOVERY, plane.cell("cell1")))


def compute(plane: Plane) -> Pod:
    """edpm-ansible's container: the user nova's, on a host with an identity that nobody may change."""
    return Pod("nova-compute", "exec nova-compute", plane.mounted("nova-compute"), on_host=True,
               before=f"test -e {IDENTITY} || install -o nova -g nova -m 0400 /proc/sys/kernel/random/uuid {IDENTITY}")


def cell_added_and_removed(pods: Pods, plane: Plane) -> None:
    """A cell without hosts; the job that removes it may run twice."""
    added = plane.add("cell2")
    cell_deployed(pods, plane, added)
    assert cells(pods.site) == ["cell0", "cell1", "cell2"]
    pods.end(f"nova-{added.name}-conductor")
    for _ in range(2):
        pods.job(plane.job("nova-cell2-cell-delete", DELETION, plane.cell("cell0"), removed=added))
    assert cells(pods.site) == ["cell0", "cell1"]
    plane.cells.remove(added)


def purged(pods: Pods, plane: Plane) -> None:
    """The daily job, with a day as ``date +%Y-%m-%d`` prints it."""
    job, before = plane.job("nova-cell1-db-purge", PURGE, plane.cell("cell1")), datetime.timedelta(days=90)
    pods.job(replace(job, environment={**job.environment, "BEFORE": str(datetime.date.today() - before)}))


# --- what is looked at ------------------------------------------------------------------------------------------------
def healthy(pods: Pods) -> None:
    """Probes: a process of that name in the pod, a page."""
    for page in PAGES.values():
        pods.site.wait_for(f"curl -s -o /dev/null -w '%{{http_code}}' http://127.0.0.1{page}", "^[23]")
    for name, process in PROBED.items():
        assert pods.inside(name, f"pgrep -r DRST {process}") == 0, pods.logs(name)[-3000:]


def pids(pods: Pods) -> dict[str, int]:
    return {name: pods.pid(name) for name in (*PROBED, *PAGES)}


def cells(site: Site) -> list[str]:
    return site.sql("SELECT name FROM nova_api.cell_mappings ORDER BY name").split()


def servers_by_cell(site: Site, plane: Plane) -> list[str]:
    """Databases of cells, each with the number of its servers."""
    return [f"{cell.database} {site.sql(f'SELECT COUNT(*) FROM {cell.database}.servers WHERE deleted = 0').strip()}"
            for cell in plane.cells]

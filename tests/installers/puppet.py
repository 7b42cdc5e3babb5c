"""Puppet: Debian's puppet and its puppet-nova (of the Zed release) install this by a manifest, from a repository
with packages of Debian's names.

The manifest makes no databases: the class that would do it installs a server of its own, too.
"""

from __future__ import annotations

import json

from tests.installers import debian
from tests.installers import debian_packaging as packaging
from tests.installers.debian_packaging import APT, APT_S, BETWEEN
from tests.installers.site import Site

PACKAGES = "puppet-agent puppet-module-nova"
REPOSITORY, MANIFEST = "/srv/debs", "/root/site.pp"
APPLY_S = 1200.0
UNITS = ("nova-api", "nova-api-metadata", "nova-conductor", "nova-scheduler", "nova-compute", "nova-novncproxy")
#: What --detailed-exitcodes says.
NOTHING_CHANGED, CHANGED = 0, 2
SITE = """
class {{ 'nova':
  ensure_package        => '{ensure}',
  default_transport_url => '{broker}',
  my_ip                 => '127.0.0.1',
  lock_path             => '/var/lock/nova',
}}
class {{ 'nova::db':
  database_connection     => '{cell}',
  api_database_connection => '{api}',
}}
class {{ 'nova::logging': log_dir => '/var/log/nova' }}
class {{ 'nova::keystone::authtoken':
  auth_url             => '{keystone}/v3',
  www_authenticate_uri => '{keystone}/v3',
  project_name         => 'service',
  password             => '{password}',
}}
class {{ 'nova::glance': endpoint_override => '{glance}' }}
class {{ 'nova::placement':
  auth_url     => '{keystone}/v3',
  project_name => 'service',
  username     => 'nova',
  password     => '{password}',
}}
class {{ 'nova::network::neutron':
  auth_url     => '{keystone}/v3',
  project_name => 'service',
  password     => 'of-neutron',
}}
class {{ 'nova::metadata': neutron_metadata_proxy_shared_secret => 'of-the-proxy' }}
class {{ 'nova::api':
  ensure_package            => '{ensure}',
  api_paste_config          => '/etc/nova/api-paste.ini',
  db_online_data_migrations => {migrates},
}}
include nova::cell_v2::simple_setup
class {{ 'nova::conductor': ensure_package => '{ensure}', workers => 1 }}
class {{ 'nova::scheduler': ensure_package => '{ensure}', workers => 1 }}
class {{ 'nova::vncproxy': ensure_package => '{ensure}' }}
class {{ 'nova::compute': ensure_package => '{ensure}', vncproxy_host => '127.0.0.1' }}
class {{ 'nova::compute::libvirt': ensure_package => '{ensure}', virt_type => 'qemu' }}
"""


def story(site: Site) -> str:
    offered(site)
    configured(site, "present")
    applied(site, CHANGED)
    healthy(site)
    site.boot("vm1")
    before = running(site)
    applied(site, NOTHING_CHANGED)
    assert running(site) == before and site.status("vm1") == "ACTIVE"
    upgraded(site)
    assert site.status("vm1") == "ACTIVE"
    site.boot("vm2")
    return "puppet-nova installs, finds nothing to change, and upgrades; a server of before lives on"


def offered(site: Site) -> None:
    """A repository. Of Debian's package with Nova's code there is one of that name, without any."""
    debian.packaged(site)
    packaging.make(site, "python3-nova", "")
    published(site)
    site.write("/etc/apt/sources.list.d/own.list", f"deb [trusted=yes] file:{REPOSITORY} ./\n")
    site.machine.ok(f"{APT} update && {APT} install --no-install-recommends {PACKAGES}", APT_S)


def published(site: Site) -> None:
    site.machine.ok(f"mkdir -p {REPOSITORY} && cp {BETWEEN}/*.deb {REPOSITORY} && cd {REPOSITORY} && "
                    "dpkg-scanpackages . > Packages", APT_S)


def configured(site: Site, ensure: str) -> None:
    """``ensure``: of packages."""
    cell, api, _cell0 = (site.database(name, "nova_puppet") for name in ("nova", "nova_api", "nova_cell0"))
    migrates = str(ensure == "latest").lower()  # puppet-nova would do it before there are tables
    site.write(MANIFEST, SITE.format(
        ensure=ensure, migrates=migrates, broker=site.broker_url, cell=cell, api=api, keystone=site.url("keystone"),
        glance=site.url("glance"), password=site.password("nova")), mode="0600")


def applied(site: Site, status: int) -> str:
    said = site.machine.run(f"puppet apply --detailed-exitcodes --color=false --modulepath /usr/share/puppet/modules "
                            f"{MANIFEST}", APPLY_S)
    assert said.status == status, f"{said.status}: {said.text[-6000:]}"
    return said.text


def healthy(site: Site) -> None:
    """As puppet sees services and cells: two, with the URLs of nova.conf. All services are up."""
    site.wait_for("nova-manage service list", r"nova-compute .*:-\)")
    for unit in UNITS:
        said = site.machine.ok(f"puppet resource --to_yaml service {unit}")
        assert "ensure: running" in said and "enable: 'true'" in said, said
    assert site.machine.ok("puppet resource nova_cell_v2").count("transport_url       => 'default'") == 2
    listed = json.loads(site.openstack("compute service list -f json"))
    assert {(one["Binary"], one["State"]) for one in listed} >= {
        (name, "up") for name in ("nova-conductor", "nova-scheduler", "nova-compute")}, listed


def running(site: Site) -> str:
    """Processes and cells."""
    return site.machine.ok(f"systemctl show -P MainPID {' '.join(UNITS)}; nova-manage cell_v2 list_cells --verbose")


def upgraded(site: Site) -> None:
    """A newer revision is in the repository, and the manifest wants the latest."""
    before = running(site)
    packaging.revised(site)
    published(site)
    site.machine.ok(f"{APT} update", APT_S)
    configured(site, "latest")
    applied(site, CHANGED)
    assert site.machine.ok("dpkg-query -W -f '${Version}' nova-api nova-compute") == 2 * packaging.NEXT
    assert running(site) != before
    healthy(site)
    applied(site, NOTHING_CHANGED)

"""Summary that ``nova-all`` prints once it is ready, with the next commands."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from nova.devel.nova_all.console_pages import ConsolePages
from nova.devel.nova_all.settings import REGION
from nova.devel.nova_all.state_directory import write

if TYPE_CHECKING:
    from nova.devel.nova_all.cloud import WholeCloud

NAME = "nova-all"
#: Entry of clouds.yaml -> user and project.
ENTRIES = {NAME: ("demo", "demo"), f"{NAME}-admin": ("admin", "admin")}


def tell(cloud: WholeCloud, pages: ConsolePages, seconds: float) -> None:
    """Print the summary, and write clouds.yaml if requested."""
    if cloud.plan.clouds_file:
        write(cloud.plan.clouds_file, clouds_yaml(cloud))
    sys.stdout.write(f"{text(cloud, pages, seconds)}\n")
    sys.stdout.flush()


def text(cloud: WholeCloud, pages: ConsolePages, seconds: float) -> str:
    """Return the summary."""
    addresses, plan = cloud.addresses, cloud.plan
    places = {**addresses.catalog, "consoles": addresses.consoles, "serial": addresses.serial,
              "metadata": f"http://127.0.0.1:{addresses.metadata_port}"}
    lines = [f"The cloud is ready, after {seconds:.1f} s: {plan.hosts} compute host{'s' if plan.hosts > 1 else ''} "
             f"({plan.driver}).", "", "Endpoints", *(f"  {name:10} {place}" for name, place in places.items()), ""]
    if lacks := cloud.lacks | ({"npm": pages.lacks} if pages.lacks else {}):
        lines += ["Optional parts that are not installed",
                  *(f"  {name:10} {words}" for name, words in lacks.items()), ""]
    if cloud.is_own_identity:
        lines += ["In a shell (user demo; admin has the same password)",
                  *(f"  export {name}={value}" for name, value in environment(cloud).items()),
                  "  openstack server create --image tiny --flavor m1.tiny --wait vm1", "", *_by_file(cloud)]
    kept = "kept" if cloud.home.lasting else "removed at the end"
    lines += [f"Files, and the log: {cloud.home.path} ({kept}). Ctrl-C ends the cloud."]
    return "\n".join(lines)


def _by_file(cloud: WholeCloud) -> list[str]:
    """Return instructions for clouds.yaml, or its contents."""
    if cloud.plan.clouds_file:
        return [f"Or:  export OS_CLIENT_CONFIG_FILE={cloud.plan.clouds_file.absolute()}",
                f"     openstack --os-cloud {NAME} server list", ""]
    return ["Or in ~/.config/openstack/clouds.yaml", *(f"  {line}" for line in clouds_yaml(cloud).splitlines()), ""]


def environment(cloud: WholeCloud, entry: str = NAME) -> dict[str, str]:
    """Return the OS_* variables of an entry."""
    user, project = ENTRIES[entry]
    return {"OS_AUTH_URL": f"{cloud.addresses.catalog['identity']}/v3", "OS_USERNAME": user,
            "OS_PASSWORD": cloud.password, "OS_PROJECT_NAME": project, "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_NAME": "Default", "OS_REGION_NAME": REGION, "OS_IDENTITY_API_VERSION": "3",
            "OS_COMPUTE_API_VERSION": "2.latest"}


def clouds_yaml(cloud: WholeCloud) -> str:
    """Return clouds.yaml with all entries. JSON strings are also valid YAML."""
    lines = ["clouds:"]
    for entry, (user, project) in ENTRIES.items():
        auth = {"auth_url": f"{cloud.addresses.catalog['identity']}/v3", "username": user, "password": cloud.password,
                "project_name": project, "user_domain_name": "Default", "project_domain_name": "Default"}
        lines += [f"  {entry}:", "    auth:", *(f"      {name}: {json.dumps(value)}" for name, value in auth.items()),
                  f"    region_name: {REGION}", '    identity_api_version: "3"']
    return "\n".join(lines) + "\n"

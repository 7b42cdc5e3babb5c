"""Makes the folder of compose.yaml: files of configuration, with passwords and keys of this cloud's own.

    prepare.py FOLDER

Each file is for one user of a container alone: its owner is that user's id in the image. Existing files stay.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nova.model.security import secret_wrap
from nova.rpc import host_rights

#: Ids of the images' users.
ROOT, NOVA, CONDUCTOR, RABBITMQ, MYSQL = 0, 900, 901, 902, 903
CONTROLLER, COMPUTE = "controller", "compute1"

NOVA_CONF = """\
[DEFAULT]
transport_url = rabbit://nova:{broker}@broker:5672/nova
hosts_transport_url = rabbit://host-{CONTROLLER}:{controller}@broker:5672/nova-hosts
enabled_apis = osapi_compute
network_manager = nova.network.manager.FlatDHCPManager
fake_network = true

[api]
auth_strategy = noauth2
noauth2_anywhere = true

[glance]
endpoint_override = http://images:9292
auth_type = admin_token
endpoint = http://images:9292
token = anything

[vnc]
novncproxy_base_url = http://127.0.0.1:6080/vnc_auto.html
"""
CONDUCTOR_CONF = """\
[DEFAULT]
hosts_transport_url = rabbit://nova:{broker}@broker:5672/nova-hosts

[api_database]
connection = mysql+pymysql://nova:{database}@database/nova_api?charset=utf8mb4

[database]
connection = mysql+pymysql://nova:{database}@database/nova?charset=utf8mb4

[conductor]
host_secret_key = {host_key}

[image_proxy]
key = {ticket_key}
servers = http://imageproxy:9293
"""
IMAGEPROXY_CONF = """\
[image_proxy]
key = {ticket_key}
"""
COMPUTE_CONF = """\
[DEFAULT]
hosts_transport_url = rabbit://host-{COMPUTE}:{compute}@broker:5672/nova-hosts
compute_driver = fake.FakeDriver
"""
DATABASE_SQL = """\
CREATE DATABASE IF NOT EXISTS nova_api CHARACTER SET utf8mb4;
CREATE DATABASE IF NOT EXISTS nova CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS nova@'%' IDENTIFIED BY '{database}';
GRANT ALL PRIVILEGES ON nova_api.* TO nova@'%';
GRANT ALL PRIVILEGES ON nova.* TO nova@'%';
"""


class File(NamedTuple):
    """``text``: with words in braces that are made up. ``group``: may read it, too."""

    text: str
    owner: int
    group: int | None = None


FILES = {
    "nova.conf": File(NOVA_CONF, ROOT, NOVA),
    "nova-conductor.conf": File(CONDUCTOR_CONF, CONDUCTOR),
    "nova-imageproxy.conf": File(IMAGEPROXY_CONF, NOVA),
    "compute1.conf": File(COMPUTE_CONF, ROOT),
    "database.sql": File(DATABASE_SQL, MYSQL),
}
DEFINITIONS = "definitions.json"


def words() -> dict[str, str]:
    """Passwords and keys, all of them new."""
    made = {name: secrets.token_hex(16) for name in ("broker", "controller", "compute", "database")}
    ticket_key = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    return {**made, "host_key": secret_wrap.new_key(), "ticket_key": ticket_key,
            "CONTROLLER": CONTROLLER, "COMPUTE": COMPUTE}


def definitions(chosen: dict[str, str]) -> str:
    """RabbitMQ's vhosts and users; hosts have the rights that ``nova-manage host rights`` prints."""
    everything = dict.fromkeys(("configure", "write", "read"), ".*")
    hosts = {CONTROLLER: chosen["controller"], COMPUTE: chosen["compute"]}
    users = [{"name": "nova", "password": chosen["broker"], "tags": ""},
             *({"name": f"host-{host}", "password": password, "tags": "", "limits": host_rights.LIMITS}
               for host, password in hosts.items())]
    rights = [*({"user": "nova", "vhost": vhost, **everything} for vhost in ("nova", host_rights.VHOST)),
              *({"user": f"host-{host}", "vhost": host_rights.VHOST, **host_rights.permissions(host)}
                for host in hosts)]
    topics = [{"user": f"host-{host}", "vhost": host_rights.VHOST, "exchange": host_rights.CALLS,
               "write": host_rights.calls_key(host), "read": "^$"} for host in hosts]
    return json.dumps({"vhosts": [{"name": "nova"}, {"name": host_rights.VHOST}], "users": users,
                       "permissions": rights, "topic_permissions": topics}, indent=1)


def prepare(folder: Path) -> None:
    """Write all files, or none where they are there."""
    if (folder / DEFINITIONS).exists():
        return
    chosen = words()
    for name, file in FILES.items():
        write(folder / name, file._replace(text=file.text.format(**chosen)))
    write(folder / DEFINITIONS, File(definitions(chosen), RABBITMQ))


def write(path: Path, file: File) -> None:
    """For its owner alone, from the beginning."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        os.fchown(out.fileno(), file.owner, file.owner if file.group is None else file.group)
        os.fchmod(out.fileno(), 0o600 if file.group is None else 0o640)
        out.write(file.text)


def main(argv: Sequence[str]) -> None:
    prepare(Path(argv[1]))


if __name__ == "__main__":
    main(sys.argv)

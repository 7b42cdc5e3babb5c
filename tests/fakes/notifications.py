"""Complete subjects of notifications, their configuration, and an outlet that records sent messages."""

from __future__ import annotations

import datetime
import types
from typing import Any

import oslo_messaging
from oslo_config import cfg

from nova import conf as nova_conf
from nova.model.flavor.flavors import Flavor
from nova.model.image.images import Image
from nova.model.network.networks import FixedAddress, Interface
from nova.model.server.keypairs import Keypair
from nova.model.volumes import VolumeCounts
from nova.notifications.facts import (
    Failure,
    NotifiedServer,
    Period,
    SpecFacts,
    States,
    TaskFacts,
    UnreachedHypervisor,
    UsedVolume,
    Who,
)
from nova.notifications.message import NotificationMessage

AT = datetime.datetime(2012, 10, 29, 13, 42, 11, 123456)
SSH_KEY = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAQQC9 made-by-a-test"

FLAVOR = Flavor(id=7, flavorid="a22d5517-147c-4147-a0d1-e698df5cd4e3", name="test_flavor", memory_mb=512, vcpus=1,
                root_gb=1, extra_specs={"hw:watchdog_action": "disabled"}, projects=("p1",), description=None)
IMAGE = Image(id="155d900f-4e14-4e4c-a73d-069cbf4541e6", name="fakeimage123456", disk_format="raw",
              container_format="raw", size_bytes=25165824, created_at=AT, updated_at=AT,
              properties={"hw_architecture": "x86_64", "base": "nobody's business"})
INTERFACE = Interface(id="ce531f90-199f-48c0-816c-13e38010b442", mac="fa:16:3e:4c:2c:30", network_id="n1",
                      label="private", addresses=(FixedAddress(address="192.168.1.3"),))
KEYPAIR = Keypair(name="my-key", user_id="fake", fingerprint="1e:2c", public_key=SSH_KEY)
AGGREGATE = types.SimpleNamespace(id=1, uuid="788608ec-ebdc-45c5-bc7f-e5f24ab92c80", name="my-aggregate",
                                  hosts=("compute",), metadata={"availability_zone": "nova"})
IMAGES = types.SimpleNamespace(id=1, uuid=AGGREGATE.uuid, name="my-aggregate", host="compute", index=1, total=2,
                               images_cached=(IMAGE.id,), images_failed=())
GROUP = types.SimpleNamespace(uuid="788608ec-ebdc-45c5-bc7f-e5f24ab92c81", name="group", user_id="fake",
                              project_id="6f70", policy="anti-affinity", rules={"max_server_per_host": 3},
                              members=("54238a20-f9be-47a7-897e-d7cb0e4c03d0",))
SERVICE = types.SimpleNamespace(host="host2", binary="nova-compute", topic="compute", disabled=False,
                                disabled_reason=None, forced_down=False, version=23, zone="nova", last_seen_at=AT,
                                uuid="fa69c544-906b-4a6a-a9c6-c1f7a8078c73")
WHO = Who("req-5b6c791d-5709-4f36-8fbe-c3e02869e35d", "fake", "6f70")
FAILURE = Failure("HostRefused", "The host refused.", "nova.errors", "BuildGuests", "Traceback ...")
VOLUME = types.SimpleNamespace(device_name="/dev/vdb", boot_index=None, delete_on_termination=False, tag=None,
                               volume_id="a07f71dc-8151-4e7d-a0cc-cd24a3f11113")
COUNTS = VolumeCounts(server_uuid="88fde343-13a8-4047-84fb-2657d5e702f9", volume_id=VOLUME.volume_id, reads=1,
                      read_bytes=512, writes=2, write_bytes=1024)
NAMED = ("rescue_image_ref", "snapshot_image_id", "volume_id", "old_volume_id", "new_volume_id", "share_id")


def server_row(**fields: Any) -> Any:
    """Return a server's row with values in all columns that payloads show, and secrets in some other columns."""
    return types.SimpleNamespace(**{
        "id": 1, "uuid": "178b0921-8f85-4257-88b6-2e743b5a975c", "deleted": 0, "project_id": "6f70", "user_id": "fake",
        "name": "some-server", "description": "some-server", "hostname": "some-server", "created_at": AT,
        "updated_at": AT, "launched_at": AT, "terminated_at": None, "deleted_at": None, "vm_state": "active",
        "task_state": None, "power_state": 1, "progress": 0, "host": "compute", "node": "fake-mini",
        "availability_zone": "nova", "pinned_availability_zone": None, "flavor": FLAVOR, "image": IMAGE,
        "image_id": IMAGE.id, "kernel_id": "", "ramdisk_id": "", "interfaces": (INTERFACE,),
        "security_groups": ("default",), "scheduler_hints": None, "disk_config": "MANUAL", "key_name": "my-key",
        "public_key": SSH_KEY, "key_type": "ssh", "reservation_id": "r-npxv0e40", "trusted_certs": ("cert-id-1",),
        "access_ip_v4": None, "access_ip_v6": None, "locked_by": None, "locked_reason": None, "instance_name": None,
        "user_data": "SECRET", "files": {"/etc/x": "SECRET"}, "guest_password": "SECRET", **fields})


def server(row: Any = None, **fields: Any) -> NotifiedServer:
    extra = {"states": States("building", "building", None, "scheduling"), "period": Period(AT, AT),
             "old_display_name": None, "new_flavor": FLAVOR, **dict.fromkeys(NAMED, VOLUME.volume_id)}
    return NotifiedServer(**{"row": row or server_row(), "who": WHO, "metadata": {}, "tags": ("tag",),
                             "instance_name": "instance-00000001", "failure": FAILURE, "extra": extra,
                             "shows_disks": True, "volumes": (VOLUME,), **fields})


USED = UsedVolume(server_row(), COUNTS, AT)
SPEC = SpecFacts(server_row(scheduler_hints={"group": "g1"}), tried=("a",), arguments={"host": "b", "node": None})


def subject(name: str) -> Any:
    """Return a subject for an event of this name."""
    what = name.partition(".")[0]
    return {"instance": server(), "aggregate": AGGREGATE, "keypair": KEYPAIR, "flavor": FLAVOR, "server_group": GROUP,
            "service": SERVICE, "volume": USED, "compute": FAILURE, "scheduler": SPEC,
            "libvirt": UnreachedHypervisor("192.0.2.7", FAILURE),
            "compute_task": TaskFacts(SPEC, "error", FAILURE, "build_instances")}[what]


def configured(**options: Any) -> cfg.ConfigOpts:
    """Return a configuration. ``driver`` is in [oslo_messaging_notifications], other options are in [notifications]."""
    conf = nova_conf.register(cfg.ConfigOpts())
    conf([], project="nova", default_config_files=[], default_config_dirs=[])
    driver = options.pop("driver", None)
    oslo_messaging.get_notification_transport(conf)  # registers its options
    conf.set_override("transport_url", "fake:/")
    if driver is not None:
        conf.set_override("driver", driver, group="oslo_messaging_notifications")
    for name, value in options.items():
        conf.set_override(name, value, group="notifications")
    return conf


class Kept:
    """An outlet that records messages. ``wait``: event to wait for before each; ``error``: raised for each."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, NotificationMessage]] = []
        self.wait: Any = None
        self.error: Exception | None = None

    def send(self, form: str, message: NotificationMessage) -> None:
        if self.wait is not None:
            self.wait.wait(10)
        if self.error is not None:
            raise self.error
        self.sent.append((form, message))

    def types(self, form: str = "versioned", what: str = "") -> list[str]:
        return [message.type for kind, message in self.sent if kind == form and what in message.type]

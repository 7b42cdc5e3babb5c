"""nova-objectstore as processes on a real broker, killed while they make images of bundles; nova-cert has the key."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from oslo_config import cfg

from nova import conf, context, errors
from nova.legacy.objectstore.store import ObjectStore
from nova.model.image.bundles import RegisterBundle, RegisteredImage
from nova.rpc.contracts.cert import CertRPC
from nova.rpc.contracts.objectstore import ObjectStoreRPC
from nova.rpc.transport import Bus
from tests.fakes.bundle_world import KEYS
from tests.fakes.bundles import Keys, bundle
from tests.functional import library_options
from tests.functional.backends import free_port, wait_until
from tests.functional.cloud import Cloud, Plan
from tests.functional.daemons import Daemon

pytestmark = pytest.mark.in_turn(6, 10)

PROJECT, BUCKET = "demo", "bundles"
DATA = os.urandom(3 * 2 ** 20) + bytes(2 ** 20)
NEEDED = ("conductor", "cert", "objectstore")
SLOW_S = 0.3  # each answer of Glance: so that there is a time to be killed in


class Registrar:
    """A cloud of three daemons, and a bundle that is made for its nova-cert."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.glance = cloud, cloud.glance
        self.daemon = cloud.daemons["objectstore"]
        self.bus = cloud_bus(cloud)
        self.store = ObjectStore(cloud.state("ctl") / "buckets")
        self.store.create_bucket(PROJECT, BUCKET)
        root = x509.load_pem_x509_certificate(self.bus.client(CertRPC).fetch_ca(PROJECT).encode())
        self.location = bundle(DATA, Keys(KEYS.user, root.public_key()), part_bytes=2 ** 20).put(
            self.store, PROJECT, BUCKET)

    def register(self, location: str = "") -> RegisteredImage:
        with context.entered(context.internal()):
            return self.bus.client(ObjectStoreRPC).register_image(RegisterBundle(
                location=location or self.location, project_id=PROJECT, name="bundled"))

    def state(self, image_id: str) -> str:
        return str(self.glance.images[image_id]["image_state"])

    def wait_state(self, image_id: str, *states: str) -> None:
        wait_until(f"the image is {states}", lambda: self.state(image_id) in states, 40, 0.01)

    def left(self) -> list[Path]:
        state = self.cloud.state("ctl")
        return [*(state / "decryption-jobs").glob("*.json"), *(state / "decryption").iterdir()]


def cloud_bus(cloud: Cloud) -> Bus:
    read = conf.register(cfg.ConfigOpts())
    library_options.register(read)
    read(["--config-file", str(cloud.root / "etc/ctl/nova.conf")], project="nova", default_config_files=[])
    return Bus(read, "tester")


@pytest.fixture(scope="module")
def registrar(make_cloud) -> Iterator[Registrar]:
    cloud = make_cloud(Plan(computes=1, certs=True, network=False, options={"DEFAULT": {
        "s3_listen": "127.0.0.1", "s3_listen_port": free_port(), "s3_workers": 2}})).prepare()
    cloud.daemons["objectstore"] = Daemon("objectstore", cloud.root / "etc/ctl/nova.conf",
                                          cloud.root / "log/objectstore.log")
    for name in NEEDED:
        cloud.daemons[name].start()
    for name in NEEDED:
        cloud.daemons[name].ready(2 if name == "objectstore" else 1)
    yield Registrar(cloud)


@pytest.fixture(autouse=True)
def quick(registrar: Registrar) -> Iterator[None]:
    yield
    registrar.glance.knobs.stall_s = 0


def test_register_when_all_runs_then_the_image_is_available(registrar: Registrar) -> None:
    answer = registrar.register()
    assert answer.container_format == "ami"
    registrar.wait_state(answer.image_id, "available")
    assert registrar.glance.data[answer.image_id] == DATA
    wait_until("nothing is left", lambda: registrar.left() == [], 10)


def test_start_then_the_daemon_is_known_by_what_it_serves(registrar: Registrar) -> None:
    wait_until("it is listed", lambda: [line for line in registrar.cloud.manage("service", "list").splitlines()
                                        if "nova-objectstore" in line and "ObjectStoreRPC 1.0" in line], 30, 1)


def test_register_when_it_is_refused_then_the_error_crosses_the_bus(registrar: Registrar) -> None:
    with pytest.raises(errors.NotFound, match="absent"):
        registrar.register(f"{BUCKET}/absent")
    with pytest.raises(errors.Invalid, match="BUCKET/PATH"):
        registrar.register("nowhere")


@pytest.mark.parametrize("state", ["pending", "downloading", "decrypting", "untarring", "uploading"])
def test_kill_when_a_step_is_under_way_then_the_next_start_makes_the_image(registrar: Registrar, state: str) -> None:
    registrar.glance.knobs.stall_s = SLOW_S
    image_id = registrar.register().image_id
    registrar.wait_state(image_id, state, "available")
    registrar.daemon.kill()
    assert registrar.state(image_id) == state and registrar.left(), "it was killed too late to show anything"
    registrar.glance.knobs.stall_s = 0
    registrar.daemon.start().ready(2)
    registrar.wait_state(image_id, "available")
    assert registrar.glance.data[image_id] == DATA
    wait_until("nothing is left", lambda: registrar.left() == [], 10)


def test_kill_when_one_worker_dies_then_its_successor_goes_on(registrar: Registrar) -> None:
    registrar.glance.knobs.stall_s = SLOW_S
    image_id = registrar.register().image_id
    registrar.wait_state(image_id, "decrypting", "available")
    for child in registrar.daemon.workers():
        os.kill(child, signal.SIGKILL)
    assert registrar.state(image_id) == "decrypting"
    registrar.glance.knobs.stall_s = 0
    registrar.wait_state(image_id, "available")
    assert registrar.glance.data[image_id] == DATA


def test_stop_when_nova_cert_is_away_then_the_image_waits_for_both(registrar: Registrar) -> None:
    cert = registrar.cloud.daemons["cert"]
    cert.kill()
    image_id = registrar.register().image_id
    registrar.daemon.wait_log(f"WARNING.*{image_id}.*postponed for a retry", 60)
    assert registrar.state(image_id) == "decrypting"
    assert registrar.daemon.terminate()[0] == 0
    cert.start().ready()
    registrar.daemon.start().ready(2)
    registrar.wait_state(image_id, "available")
    assert registrar.glance.data[image_id] == DATA
    wait_until("nothing is left", lambda: registrar.left() == [], 10)

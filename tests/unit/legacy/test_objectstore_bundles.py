"""nova-objectstore's part for images of bundles: with nova-cert, on the bus of control daemons, as nova-api asks it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from oslo_config import cfg

from nova import conf, errors, http_server
from nova.cmd.cert import Cert
from nova.cmd.objectstore import ObjectStoreDaemon
from nova.model.image.bundles import RegisterBundle
from nova.rpc.buses import control_bus, has_control_bus
from nova.rpc.contracts.cert import CertRPC
from nova.rpc.contracts.objectstore import ObjectStoreRPC
from tests.fakes.bundle_world import KEYS
from tests.fakes.bundles import Keys, bundle
from tests.fakes.glance import FakeGlance

DATA = b"an image" * 5000


@pytest.fixture
def glance() -> Iterator[FakeGlance]:
    with FakeGlance() as fake:
        yield fake


def options(folder: Path, glance: FakeGlance, **more: object) -> cfg.ConfigOpts:
    made = conf.register(cfg.ConfigOpts())
    made([], project="nova", default_config_files=[])
    given = {"state_path": str(folder), "hosts_transport_url": f"local://{folder}", "host": "controller",
             "s3_believe_all": True, "s3_listen": "127.0.0.1", **more}
    for name, value in given.items():
        made.set_override(name, value)
    made.set_override("endpoint_override", glance.url, group="glance")
    made.set_override("num_retries", 0, group="glance")
    return made


def daemon(options: cfg.ConfigOpts, upkeep: bool = True) -> ObjectStoreDaemon:
    return ObjectStoreDaemon(options, http_server.bind("127.0.0.1", 0), upkeep)


def until(reached: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_register_when_it_is_asked_over_the_bus_then_the_image_is_made_with_nova_certs_key(
        tmp_path: Path, glance: FakeGlance, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)
    read = options(tmp_path, glance)
    cert, store = Cert(read, 0), daemon(read)
    cert.start()
    store.start()
    try:
        bus = control_bus(read, "controller")
        root = x509.load_pem_x509_certificate(bus.client(CertRPC).fetch_ca("a project").encode())
        store.store.create_bucket("everybody", "images")
        made = bundle(DATA, Keys(KEYS.user, root.public_key()))
        location = made.put(store.store, "everybody", "images")
        asked = bus.client(ObjectStoreRPC)
        assert asked.read_manifest(location, "a project").size == len(DATA)
        image_id = asked.register_image(RegisterBundle(location=location, project_id="a project", name="disk")).image_id
        until(lambda: glance.images[image_id]["image_state"] == "available")
        assert glance.data[image_id] == DATA and glance.images[image_id]["owner"] == "a project"
        with pytest.raises(errors.NotFound, match="images/absent could not be found"):
            asked.read_manifest("images/absent", "a project")
        assert set(store.health_checks().checks) >= {"bus", "glance", "store"}
    finally:
        store.stop(2)
        cert.stop(2)
    assert list((tmp_path / "decryption").iterdir()) == []
    assert "available" in caplog.text and made.key not in caplog.text and made.iv not in caplog.text


def test_worker_when_it_is_not_the_first_then_it_makes_no_images(tmp_path: Path, glance: FakeGlance) -> None:
    other = daemon(options(tmp_path, glance), upkeep=False)
    assert other.bundles is None and "glance" not in other.health_checks().checks


def test_start_when_there_is_no_broker_then_it_serves_s3_alone(tmp_path: Path, glance: FakeGlance, caplog: Any) -> None:
    with caplog.at_level(logging.INFO):
        alone = daemon(options(tmp_path, glance, hosts_transport_url=None))
    assert alone.bundles is None and set(alone.health_checks().checks) == {"store"}
    assert "transport_url is not set" in caplog.text
    read = options(tmp_path, glance, hosts_transport_url=None)
    assert not has_control_bus(read)
    read.set_override("transport_url", "rabbit://nova:secret@127.0.0.1:1/")
    assert has_control_bus(read)


def test_start_when_a_folder_cannot_be_used_then_it_is_named(tmp_path: Path, glance: FakeGlance) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.service.CannotStart, match="image_decryption_dir"):
        daemon(options(tmp_path, glance, image_decryption_dir=str(tmp_path / "file/below")))

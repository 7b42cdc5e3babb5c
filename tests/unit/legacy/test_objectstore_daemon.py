"""nova-objectstore: what keeps it from its start, what it checks of itself, and its upkeep."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf, errors, http_server
from nova.cmd import objectstore
from nova.legacy.objectstore.names import file_name
from nova.legacy.objectstore.store import PutObject
from nova.legacy.signatures.signers import KeystoneSigners, NoAuthSigners


@pytest.fixture
def options(tmp_path: Path) -> cfg.ConfigOpts:
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[])
    made.set_override("buckets_path", str(tmp_path / "buckets"))
    made.set_override("s3_listen", "127.0.0.1")
    made.set_override("s3_listen_port", 0)
    made.set_override("auth_strategy", "noauth2", "api")
    return made


@pytest.fixture
def sock() -> Iterator[socket.socket]:
    with http_server.bind("127.0.0.1", 0) as made:
        yield made


@pytest.mark.parametrize(("option", "group"), [("s3_believe_all", None), ("noauth2", "api")])
def test_daemon_when_every_caller_is_believed_then_not_for_others(options: cfg.ConfigOpts, option: str,
                                                                  group: str | None) -> None:
    objectstore.bind(options).close()
    options.set_override("s3_listen", "0.0.0.0")
    if group is None:
        options.set_override("auth_strategy", "keystone", "api")
        objectstore.bind(options).close()
        options.set_override(option, True)
    with pytest.raises(errors.service.CannotStart, match=f"{option} accepts every caller.*, but s3_listen = 0.0.0.0"):
        objectstore.bind(options)
    options.set_override("noauth2_anywhere", True, "api")
    objectstore.bind(options).close()


def test_daemon_when_its_port_is_taken_then_the_options_are_named(options: cfg.ConfigOpts, sock: socket.socket) -> None:
    options.set_override("s3_listen_port", sock.getsockname()[1])
    with pytest.raises(errors.service.CannotStart, match="s3_listen_port"):
        objectstore.bind(options)


def test_daemon_when_its_folder_cannot_be_used_then_the_option_is_named(options: cfg.ConfigOpts,
                                                                         tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    options.set_override("buckets_path", str(tmp_path / "file" / "below"))
    with pytest.raises(errors.service.CannotStart, match="buckets_path"):
        objectstore.store(options)


def test_daemon_when_keystone_is_asked_then_its_url_must_be_right_and_health_asks_it(options: cfg.ConfigOpts,
                                                                                     sock: socket.socket) -> None:
    options.set_override("auth_strategy", "keystone", "api")
    options.set_override("keystone_ec2_url", "http://127.0.0.1:9/v2.0/ec2tokens")
    with pytest.raises(errors.config.Ec2Url, match="keystone_ec2_url"):
        objectstore.signers(options)
    options.set_override("keystone_ec2_url", "http://127.0.0.1:9/v3/ec2tokens")
    assert isinstance(objectstore.signers(options), KeystoneSigners)
    checks = objectstore.ObjectStoreDaemon(options, sock).health_checks().checks
    checks["store"]()
    with pytest.raises(errors.Unavailable):
        checks["keystone"]()


def test_daemon_when_nobody_is_asked_then_keystone_is_none_of_its_checks(options: cfg.ConfigOpts,
                                                                         sock: socket.socket) -> None:
    assert isinstance(objectstore.signers(options), NoAuthSigners)
    assert set(objectstore.ObjectStoreDaemon(options, sock).health_checks().checks) == {"store"}
    options.set_override("s3_believe_all", True)
    assert objectstore.signers(options) is None


def test_daemon_when_the_options_bound_objects_then_the_store_has_the_bounds(options: cfg.ConfigOpts) -> None:
    limits = objectstore.store(options).limits
    assert (limits.bytes_per_owner, limits.objects_per_owner, limits.least_free) == (10 * 2 ** 30, 100_000, 2 ** 30)
    for name, value in (("s3_project_bytes", 10), ("s3_project_objects", 2), ("s3_longest_object", 5),
                        ("s3_reserved_disk_mb", 3)):
        options.set_override(name, value)
    limits = objectstore.store(options).limits
    assert limits[:3] == (10, 2, 5) and limits.least_free == 3 * 2 ** 20


def test_upkeep_then_old_uploads_and_files_of_the_killed_go_and_others_stay(options: cfg.ConfigOpts,
                                                                            sock: socket.socket) -> None:
    options.set_override("s3_upload_expiry", 60)
    daemon = objectstore.ObjectStoreDaemon(options, sock)
    daemon.store.create_bucket("p", "bucket")
    daemon.store.clock = lambda: time.time() - 61
    old = daemon.uploads.start("p", "bucket", "old", {})
    daemon.store.clock = time.time
    new = daemon.uploads.start("p", "bucket", "new", {})
    left = daemon.store.new / "new.left"
    left.write_bytes(b"half of it")
    os.utime(left, (1, 1))
    daemon.store.put("p", "bucket", "key", PutObject([b"x"], lambda: "e"))
    count = Path(options.buckets_path) / "usage" / file_name("p")
    assert count.read_bytes()
    daemon.keep()
    assert not count.read_bytes()  # counted anew by the next write
    assert [one.id for one in daemon.uploads.list_uploads("p", "bucket")] == [new.id] and old.id != new.id
    assert not left.exists()
    assert objectstore.ObjectStoreDaemon(options, sock, upkeep=False).upkeep == []

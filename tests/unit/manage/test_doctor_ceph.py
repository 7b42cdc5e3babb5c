"""What the doctor says of Ceph on a compute host."""

from __future__ import annotations

import types
from typing import Any

import pytest

from nova.manage.doctor import NAMES
from nova.manage.doctor.ceph import ceph_pool as pool
from nova.manage.doctor.finding import BAD, OK
from nova.privileged.runner import Completed
from tests.fakes.ceph import FakeCeph


def options(driver: str = "libvirt.LibvirtDriver", **changes: Any) -> Any:
    libvirt = {"images_type": "rbd", "images_rbd_pool": "vms", "rbd_user": "nova",
               "images_rbd_ceph_conf": "/etc/ceph/c.conf", "rbd_connect_timeout": 5, **changes}
    return types.SimpleNamespace(compute_driver=driver, libvirt=types.SimpleNamespace(**libvirt))


@pytest.mark.parametrize("host", [options("fake.FakeDriver"), options(images_type="qcow2"), options("")])
def test_host_without_disks_in_ceph_then_nothing_is_asked(host):
    assert pool(host)[:2] == (OK, "guests' disks are not in Ceph here")


def test_pool_that_answers_then_its_space_is_said():
    found = pool(options(), FakeCeph())
    assert found.state == OK and "pool vms" in found.what


def test_pool_that_is_not_there_then_its_name_is_said():
    found = pool(options(images_rbd_pool="other"), FakeCeph())
    assert found.state == BAD and "no pool other" in found.what


def test_cluster_that_does_not_answer_then_the_reason_and_where_to_look_are_said():
    class Away(FakeCeph):
        def run(self, argv: Any, **_: Any) -> Completed:
            return Completed(1, "", "[errno 110] RADOS timed out (error connecting to the cluster)")
    found = pool(options(), Away())
    assert found.state == BAD and "timed out" in found.what and "rbd_user" in found.cure


def test_check_has_a_name():
    assert "ceph" in NAMES

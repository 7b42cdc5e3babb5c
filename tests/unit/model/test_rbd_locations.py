"""Where an image lies in Ceph: what is taken for a place there, and what never reaches a command."""

from __future__ import annotations

import pytest

from nova.model.image.rbd_locations import RbdLocation, rbd_location

FSID = "42232501-085c-48e2-97b8-c0da3f3056a0"


def test_url_when_it_names_cluster_pool_image_and_snapshot_then_it_is_read_and_written_alike():
    found = rbd_location(url := f"rbd://{FSID}/images/8f3a0a1e_0.x/snap")
    assert found == RbdLocation(fsid=FSID, pool="images", image="8f3a0a1e_0.x", snapshot="snap") and found.url == url


@pytest.mark.parametrize("url", [
    "", "rbd://", "rbd://image", f"rbd://{FSID}/images/one", f"rbd://{FSID}/images/one/snap/more",
    f"rbd://{FSID}//one/snap", "rbd://elsewhere/images/one/snap", f"swift+https://user:password@{FSID}/images/one/snap",
    "file:///var/lib/glance/images/one", f"rbd://{FSID}/images/--pool=volumes/snap", f"rbd://{FSID}/images/one@x/snap",
    f"rbd://{FSID}/images/one/%2e%2e%2fsnap", f"rbd://{FSID}/images/one%20two/snap", f"rbd://{FSID}/images/one/snap\n",
    f"rbd://{FSID}/images/{'x' * 200}/snap", f"RBD://{FSID}/images/one/snap"])
def test_url_when_it_is_anything_else_then_it_is_no_place(url):
    assert rbd_location(url) is None

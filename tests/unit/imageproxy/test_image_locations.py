"""Where an image lies in Ceph, as a host learns it from the image proxy; and what no host learns."""

from __future__ import annotations

import pytest

from nova import errors
from nova.clients.image_proxy import ImageProxy, ProxySettings
from nova.model.image.image_tickets import WRITE
from nova.model.image.rbd_locations import rbd_location
from tests.fakes.glance import FakeGlance
from tests.fakes.image_proxies import HOST, QUICK, SECRET, RunningProxy, glance_at, ticket

FSID = "42232501-085c-48e2-97b8-c0da3f3056a0"
IN_CEPH = f"rbd://{FSID}/images/one/snap"
WITH_PASSWORD = "swift+https://service%3Aglance:a-password@identity/v3/glance/one"


def test_locations_then_the_host_learns_those_in_ceph_and_no_password_of_another_store(
        glance: FakeGlance, proxy: RunningProxy) -> None:
    image_id = glance.add(b"data")
    glance.locations[image_id] = [WITH_PASSWORD, IN_CEPH, "rbd://x/--all/one/snap"]
    assert proxy.client(image_id).locations(image_id) == (rbd_location(IN_CEPH),)
    assert glance_at(glance.url).locations(image_id)[0] == WITH_PASSWORD


@pytest.mark.parametrize("refusal", [404, 403])
@pytest.mark.parametrize("members", [{"direct_url": IN_CEPH}, {"locations": [{"url": IN_CEPH, "metadata": {}}]}])
def test_locations_when_the_image_service_has_no_call_for_them_then_they_are_the_images_members(
        glance: FakeGlance, proxy: RunningProxy, refusal: int, members: dict[str, object]) -> None:
    glance.knobs.no_locations = refusal
    image_id, bare = glance.add(b"data", **members), glance.add(b"data")
    assert proxy.client(image_id).locations(image_id) == (rbd_location(IN_CEPH),)
    assert proxy.client(bare).locations(bare) == ()


def test_locations_when_the_ticket_is_of_another_host_or_to_write_then_they_are_not_told(
        glance: FakeGlance, proxy: RunningProxy) -> None:
    image_id = glance.add(b"data")
    glance.locations[image_id] = [IN_CEPH]
    with pytest.raises(errors.NovaError) as error:
        proxy.client(image_id, secret="another host's secret, long enough too").locations(image_id)
    assert error.value.code == "image.ticket_not_proven"
    writer = ImageProxy(HOST, lambda host: (SECRET,), ProxySettings(True, QUICK, 5.0))
    writer.hold([ticket(image_id, WRITE, proxy.url)])
    with pytest.raises(errors.NovaError) as error:
        writer.locations(image_id)
    assert error.value.code == "image.ticket_missing"
    assert not [path for _method, path, _headers in glance.requests if path.endswith("/locations")]

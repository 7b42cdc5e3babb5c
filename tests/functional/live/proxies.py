"""Images and networks of the old versions, which other services keep now."""

from __future__ import annotations

from tests.functional.client import IMAGE
from tests.functional.live.caller import Answer, turning_points
from tests.functional.live.scenario import Exchange, each, scenario
from tests.functional.live.world import World

PATH = f"/images/{IMAGE}/metadata"


@scenario
def images(world: World) -> None:
    live = world.live
    live.shows("images", "image-get-resp", f"/images/{IMAGE}")
    each(live, "DELETE /images/{image_id}", lambda version: f"/images/{world.cloud.glance.add(b'x', name='doomed')}")
    kept = world.cloud.glance.add(b"x", name="kept", protected=True)
    live.call("DELETE", f"/images/{kept}", None, 35, expect=403)


@scenario
def image_metadata(world: World) -> None:
    live = world.live
    live.shows("images", "image-metadata-get-resp", PATH)
    Exchange(operation="POST /images/{image_id}/metadata", path=PATH, folder="images",
             request="image-metadata-post-req", answer="image-metadata-post-resp").run(live)
    live.shows("images", "image-meta-key-get", f"{PATH}/kernel_id")
    Exchange(operation="PUT /images/{image_id}/metadata/{key}", path=f"{PATH}/auto_disk_config", folder="images",
             request="image-meta-key-put-req", answer="image-meta-key-put-resp").run(live)

    def put_back(answer: Answer, version: int) -> None:
        world.cloud.glance.images[IMAGE] |= {"auto_disk_config": "True"}

    Exchange(operation="PUT /images/{image_id}/metadata", path=PATH, folder="images",
             request="image-metadata-put-req", answer="image-metadata-put-resp", done=put_back).run(live)

    def doomed(version: int) -> str:
        world.cloud.glance.images[IMAGE] |= {"doomed": "x"}
        return f"{PATH}/doomed"
    each(live, "DELETE /images/{image_id}/metadata/{key}", doomed)


@scenario
def networks(world: World) -> None:
    world.live.shows("os-networks", "network-show-resp", f"/os-networks/{world.network}")


@scenario
def bare_metal(world: World) -> None:
    """Creating and changing nodes was never taken over from nova-baremetal."""
    live, nodes = world.live, "/os-baremetal-nodes"
    for version in (1, 35, 0):
        live.call("POST", nodes, {"node": {}}, version, expect=400)
        live.call("DELETE", f"{nodes}/1", None, version, expect=400)
        live.call("POST", f"{nodes}/1/action", {"add_interface": {}}, version, expect=400)
        live.call("POST", f"{nodes}/1/action", {"remove_interface": {}}, version, expect=400)
    live.call("GET", nodes, None, 36, expect=404)


@scenario
def volumes(world: World) -> None:
    """There are none to be read."""
    nothing = "00000000-0000-4000-8000-00000000ffff"
    attachments = f"/servers/{world.server}/os-volume_attachments"
    for operation, path in (("GET /os-volumes", "/os-volumes"), ("GET /os-volumes/detail", "/os-volumes/detail"),
                            ("GET /os-snapshots", "/os-snapshots"),
                            ("GET /os-snapshots/detail", "/os-snapshots/detail"),
                            ("GET /servers/{server_id}/os-volume_attachments", attachments)):
        each(world.live, operation, path)
    for operation, path in (("GET /os-volumes/{volume_id}", f"/os-volumes/{nothing}"),
                            ("GET /os-snapshots/{snapshot_id}", f"/os-snapshots/{nothing}"),
                            ("GET /servers/{server_id}/os-volume_attachments/{volume_id}", f"{attachments}/{nothing}")):
        for version in turning_points(operation):
            world.live.call("GET", path, None, version, expect=404)

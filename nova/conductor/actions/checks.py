"""Checks that several actions make on the request: images, flavors, keypairs, limits of metadata and injected files."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import msgspec

from nova import context, errors, failures
from nova.conductor.engine.deps import ConductorSettings, Deps
from nova.conductor.quota import quota
from nova.db import keypairs
from nova.db.sql.engine import Connection
from nova.model.flavor.flavors import Flavor
from nova.model.image import image_properties
from nova.model.image.images import Image
from nova.model.numa.topology import GuestTopology
from nova.model.scheduling import image_flavor_conflicts
from nova.model.scheduling.requirements import DEVICES, Needs, needs_of
from nova.model.server.keypairs import Keypair
from nova.model.server.server_orders import ResizeServer
from nova.model.server.servers import NewServer

ENCRYPTION_KEY = "cinder_encryption_key_id"  # image property: set if the image data is encrypted


def usable_image(deps: Deps, image_id: str) -> Image:
    """Return an image that servers can be created from, as visible to the requesting user.

    Its kernel and ramdisk are checked in the same way, because hosts fetch them with credentials that can read the
    images of all projects. Raises server.BadImage, server.BadImageProperty or Unavailable.
    """
    image = _active_image(deps, image_id)
    for part in (image.kernel_id, image.ramdisk_id):
        if part:
            _active_image(deps, part)
    if (wrong := image_properties.problem(image.properties)) is not None:
        raise errors.server.BadImageProperty(image_id=image_id, reason=wrong)
    return image


def _active_image(deps: Deps, image_id: str) -> Image:
    with failures.replaced((errors.NotFound, errors.Forbidden), lambda _: errors.server.BadImage(image_id=image_id,
            reason="it does not exist or is not visible to you")):
        whose = msgspec.structs.replace(context.current(), request_id="", global_request_id=None, traceparent=None)
        image = deps.sharing.of("image", functools.partial(_show_all, deps))(image_id, (image_id, whose))
    if image.status != "active":
        raise errors.server.BadImage(image_id=image_id, reason=f"its status is {image.status}, not active")
    return image


def _show_all(deps: Deps, image_ids: Sequence[str]) -> list[Image]:
    """Return one image for several requests of one user, which name it at the same time."""
    image: Image = deps.images.show(image_ids[0], as_user=True)
    return [image] * len(image_ids)


def check_disk_of(image: Image | None) -> None:
    """Raise server.BadImageProperty if the image was made from an encrypted volume, so that no host can make a disk of
    it. An image without an id describes the contents of a volume, which are decrypted."""
    if image is not None and image.id and ENCRYPTION_KEY in image.properties:
        raise errors.server.BadImageProperty(image_id=image.id, reason=(
            "it was made from an encrypted volume, so it can only become a volume: create one (openstack volume create "
            "--image), and a server that boots from it"))


def keypair(tx: Connection, user_id: str, name: str | None) -> Keypair | None:
    """Return the user's keypair of that name, or None without a name. Raises server.BadKeypair if it does not exist."""
    if not name:
        return None
    with failures.replaced(errors.NotFound, lambda _: errors.server.BadKeypair()):
        return keypairs.get(tx, user_id, name)


def check_flavor(flavor: Flavor, image: Image | None, order: NewServer | ResizeServer) -> None:
    """Check that the flavor can be used for the server. ``image`` None: its disk is created empty, so no size is
    checked.

    Raises server.BadFlavor if the flavor is disabled, Forbidden for a root disk of 0 GB if the user may not have one,
    and the errors of ``check_fits``.
    """
    if flavor.disabled:
        raise errors.server.BadFlavor(flavor_id=order.flavor_id)
    if image is None:
        return
    if not flavor.root_gb and not order.may_zero_disk:
        raise errors.Forbidden("Only volume-backed servers are allowed for flavors with zero disk.")
    check_fits(flavor, image)


def check_fits(flavor: Flavor, image: Image) -> None:
    """Check that the image fits in the flavor's memory and root disk (0 GB: as large as the image).

    Raises server.FlavorTooSmall, or server.ImageAndFlavor if the two contradict each other.
    """
    check_together(flavor, image)
    if flavor.memory_mb < image.min_ram_mb:
        raise errors.server.FlavorTooSmall(reason="Flavor's memory is too small for requested image: it has "
                                           f"{flavor.memory_mb} MB, the image needs {image.min_ram_mb} MB.")
    if flavor.root_gb:
        size = image.virtual_size_bytes or image.size_bytes
        if size > flavor.root_gb * 1024**3:
            raise errors.server.FlavorTooSmall(reason=f"Flavor's disk is too small for requested image. Flavor disk is "
                                               f"{flavor.root_gb * 1024**3} bytes, image is {size} bytes.")
        if flavor.root_gb < image.min_disk_gb:
            raise errors.server.FlavorTooSmall(reason="Flavor's disk is smaller than the minimum size specified in "
                                               f"image metadata. Flavor disk is {flavor.root_gb} GB, "
                                               f"minimum size is {image.min_disk_gb} GB.")


def check_items(metadata: Mapping[str, str], files: Mapping[str, str], limits: Mapping[str, int]) -> None:
    """Check a server's metadata and injected files (path -> base64) against the limits. Raises quota.TooMany."""
    if not quota.fits(limits.get("metadata_items", -1), 0, len(metadata)):
        raise errors.quota.TooMany(what="too many items of metadata", limit=limits["metadata_items"])
    if not quota.fits(limits.get("injected_files", -1), 0, len(files)):
        raise errors.quota.TooMany(what="too many files to inject", limit=limits["injected_files"])
    for path, contents in files.items():
        if not quota.fits(limits.get("injected_file_path_bytes", -1), 0, len(path.encode())):
            raise errors.quota.TooMany(what="the path of a file to inject is too long, in bytes",
                                       limit=limits["injected_file_path_bytes"])
        if not quota.fits(limits.get("injected_file_content_bytes", -1), 0, _decoded_bytes(contents)):
            raise errors.quota.TooMany(what="the contents of a file to inject are too long, in bytes",
                                       limit=limits["injected_file_content_bytes"])


def _decoded_bytes(contents: str) -> int:
    """Return the length of base64 text after decoding, in bytes."""
    packed = "".join(contents.split())
    return len(packed) // 4 * 3 - packed[-2:].count("=")


def wants_drive(image: Image | None) -> bool:
    """True if the image requires a config drive for its servers (``img_config_drive``)."""
    return image is not None and image.properties.get("img_config_drive") == "mandatory"



def check_together(flavor: Flavor, image: Image) -> None:
    """Raise server.ImageAndFlavor if the flavor and the image contradict each other, so that no host can run the
    guest."""
    found = image_flavor_conflicts.conflict(image.properties, flavor.extra_specs)
    if found is not None:
        raise errors.server.ImageAndFlavor(**found._asdict())


def check_needs(settings: ConductorSettings, flavor: Flavor, image: Image | None) -> Needs:
    """Return the requirements of the flavor and the image on a host. Raises Invalid if they are undefined or if no host
    can satisfy them (:mod:`nova.model.scheduling.requirements`)."""
    return needs_of(flavor, image.properties if image else {}, settings.pci_aliases)


def check_same_place(deps: Deps, flavor: Flavor, old: Image | None, image: Image) -> None:
    """Check that the server keeps its PCI and NUMA claim on its host with the new image. Its devices stay as they are,
    even if their aliases have changed since.

    Raises server.RebuildOtherTopology if the claim would change, and Invalid if no host can satisfy the requirements.
    """
    specs = {name: value for name, value in flavor.extra_specs.items() if name != DEVICES}
    bare = msgspec.structs.replace(flavor, extra_specs=specs)
    now, then = (_guest(check_needs(deps.settings, bare, one)) for one in (old, image))
    if now != then:
        raise errors.server.RebuildOtherTopology(image_id=image.id)


def _guest(needs: Needs) -> GuestTopology | None:
    return needs.requirements.topology.guest if needs.requirements else None


AUTO, MANUAL = "AUTO", "MANUAL"  # AUTO: grow the root file system to its disk

DISABLED = "disabled"


def disk_config(order: NewServer, image: Image | None) -> str:
    """Return AUTO or MANUAL: the requested value, else the image's, else MANUAL. Raises server.DiskConfigDisabled if
    the image forbids AUTO."""
    if not order.disk_config_asked:
        return AUTO if _says_of_disk(image) in ("true", "1", "yes", "on") else MANUAL
    check_disk_config(order.disk_config, image)
    return order.disk_config


def check_disk_config(wanted: str | None, image: Image | None) -> None:
    """Raise server.DiskConfigDisabled if AUTO is requested for an image that forbids it."""
    if wanted == AUTO and image is not None and _says_of_disk(image) == DISABLED:
        raise errors.server.DiskConfigDisabled(image=image.id)


def _says_of_disk(image: Image | None) -> str:
    properties = image.properties if image else {}
    return (properties.get("auto_disk_config") or properties.get("hw_auto_disk_config") or "").lower()

"""Actions on images: describe, register, share, create from an instance, deregister."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence

import msgspec

from nova import errors, failures
from nova.legacy.ec2 import devices, lists
from nova.legacy.ec2.devices import BlockDeviceMapping
from nova.legacy.ec2.faults import Ec2Error, absent, invalid, missing, unsupported
from nova.legacy.ec2.handlers.instances import AttributeValue, bad_attribute, server
from nova.legacy.ec2.parameters import Ec2Arguments, Ec2Listing
from nova.legacy.ec2.request import Ec2Request
from nova.legacy.ec2.views import images as views
from nova.legacy.ec2.views.instances import root_type
from nova.legacy.ec2.xml import Tree
from nova.model.ec2 import IMAGE, KINDS, MACHINE
from nova.model.image.bundles import RegisterBundle
from nova.model.image.images import Image, ImageQuery, NewImage
from nova.model.server.server_orders import CreateImage as NewImageOfServer

SHOW = "os_compute_api:servers:create_image"
VOLUME_BACKED = f"{SHOW}:allow_volume_backed"
LAUNCH_PERMISSION, ALL = "launchPermission", "all"
OWNERS_SELF = "self"
_ID = re.compile("(ami|aki|ari)-[0-9a-f]+", re.IGNORECASE)
ARCHITECTURES = ("i386", "i686", "x86_64", "arm64", "aarch64", "ppc64le", "s390x", "armv7l")

FILTERS: lists.FilterPaths = {
    "image-id": "imageId", "name": "name", "state": "imageState", "is-public": "isPublic",
    "architecture": "architecture", "image-type": "imageType", "owner-id": "imageOwnerId", "kernel-id": "kernelId",
    "ramdisk-id": "ramdiskId", "root-device-type": "rootDeviceType", "root-device-name": "rootDeviceName",
    "description": "description", "manifest-location": "imageLocation", "creation-date": "creationDate",
    "virtualization-type": "virtualizationType",
    "block-device-mapping.snapshot-id": "blockDeviceMapping.ebs.snapshotId"}


class DescribeImages(Ec2Listing, frozen=True, kw_only=True):
    image_id: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    executable_by: tuple[str, ...] = ()
    include_deprecated: bool = False
    include_disabled: bool = False


def describe_images(req: Ec2Request, args: DescribeImages) -> Tree:
    """List the images that the caller may use.

    Raises InvalidAMIID.NotFound or Malformed, InvalidParameterValue for an unknown filter.
    """
    lists.check_not_both(args.image_id, args, "ImageId")
    lists.check_few(args.image_id, "ImageId")
    if args.image_id:
        found = [image_named(req, one) for one in dict.fromkeys(args.image_id)]
    else:
        found = sorted(all_images(req), key=lambda one: (str(one.created_at), one.id))
    owners = {req.project_id if one == OWNERS_SELF else one for one in args.owner}
    chosen = [image for image in found if (not owners or image.owner in owners)
              and (not args.executable_by or _is_for(req, image, args.executable_by))]
    page = lists.chosen(views.all_of(req, chosen), args, FILTERS, "imageId", has_tags=True)
    return {"imagesSet": page.items, "nextToken": page.next_token}


def _is_for(req: Ec2Request, image: Image, whom: Sequence[str]) -> bool:
    """Return whether ``whom`` may use the image. ``all``: public images; ``self``: images shared with the project."""
    return (ALL in whom and image.visibility == "public") or (
        OWNERS_SELF in whom and image.visibility != "public" and image.owner != req.project_id)


def all_images(req: Ec2Request) -> Sequence[Image]:
    """Return all images that the image service shows to the caller."""
    found: Sequence[Image] = req.conductor.list_images(ImageQuery())
    return found


def image_named(req: Ec2Request, shown: str) -> Image:
    """Return an image by id, or by name if the text does not look like an id.

    Raises InvalidAMIID.NotFound or Malformed.
    """
    if not _ID.fullmatch(shown.strip()):
        if re.fullmatch("[a-z]{1,8}-.*", shown) and shown.partition("-")[0] in KINDS:
            req.one_meant(MACHINE, shown)  # raises: malformed, or an id of another resource type
        named: Sequence[Image] = req.conductor.list_images(ImageQuery(filters={"name": shown}, limit=1))
        if not named:
            raise absent(IMAGE, shown)
        return named[0]
    with failures.replaced(errors.NotFound, lambda _: absent(IMAGE, shown)):
        image: Image = req.conductor.get_image(req.one_meant(MACHINE, shown.strip()))
    return image


# -- registration


class RegisterImage(Ec2Arguments, frozen=True, kw_only=True):
    image_location: str | None = None
    name: str | None = None
    description: str | None = None
    architecture: str | None = None
    kernel_id: str | None = None
    ramdisk_id: str | None = None
    root_device_name: str | None = None
    virtualization_type: str | None = None
    block_device_mapping: tuple[BlockDeviceMapping, ...] = ()
    ena_support: bool | None = None
    sriov_net_support: str | None = None


def register_image(req: Ec2Request, args: RegisterImage) -> Tree:
    """Register an image from a bundle in the object store (ImageLocation) or a volume snapshot (BlockDeviceMapping).

    Raises MissingParameter, InvalidManifest if the bundle does not exist, InvalidParameterValue, UnsupportedOperation.
    """
    if args.architecture is not None and args.architecture not in ARCHITECTURES:
        raise invalid("Architecture", args.architecture, f"It must be one of {', '.join(ARCHITECTURES)}.")
    mapping = [devices.entry(req, one) for one in args.block_device_mapping]
    if any(one.get("source_type") in ("snapshot", "volume") for one in mapping):
        return {"imageId": _of_snapshots(req, args, mapping)}
    location = args.image_location or args.name
    if not location:
        raise missing("ImageLocation")
    return {"imageId": _of_bundle(req, args, location, mapping)}


def _of_snapshots(req: Ec2Request, args: RegisterImage, mapping: Sequence[Mapping[str, object]]) -> str:
    """Register an image without data, whose servers boot from the snapshot of the root device."""
    if not args.name:
        raise missing("Name")
    root = args.root_device_name or str(mapping[0].get("device_name") or "/dev/vda")
    named = [dict(one) for one in mapping]
    roots = [one for one in named if one.get("device_name") in (root, None) and one.get("source_type") != "blank"]
    if not roots:
        raise invalid("RootDeviceName", root, "BlockDeviceMapping has no snapshot for this device.")
    for one in named:
        source = one["source_type"]
        one["boot_index"] = 0 if one is roots[0] else None
        if source != "blank":
            one[f"{source}_id"] = one.pop("uuid")
    properties = {
        "block_device_mapping": json.dumps(named), "bdm_v2": "True", "root_device_name": root,
        "image_state": "available", "architecture": args.architecture or "x86_64",
        **({"description": args.description} if args.description else {}), **_parts(req, args)}
    made: Image = req.conductor.register_image(NewImage(
        id=str(uuid.uuid4()), name=args.name, disk_format="raw", container_format="bare", properties=properties))
    return req.id(MACHINE, made.id)


def _parts(req: Ec2Request, args: RegisterImage) -> dict[str, str]:
    named = {"kernel_id": args.kernel_id, "ramdisk_id": args.ramdisk_id}
    return {key: image_named(req, shown).id for key, shown in named.items() if shown}


def _of_bundle(req: Ec2Request, args: RegisterImage, location: str, mapping: Sequence[object]) -> str:
    if req.site.objects is None:
        raise unsupported("ImageLocation: this cloud has no object store (nova-objectstore).")
    req.authorize(SHOW)  # the only check: the object store registers with its own token
    with failures.replaced(errors.NotFound, lambda error: Ec2Error("InvalidManifest", error.message)):
        facts = req.site.objects.read_manifest(location, req.project_id)
    parts = _parts(req, args)
    for key, shown in (("kernel_id", facts.kernel_id), ("ramdisk_id", facts.ramdisk_id)):
        if shown and key not in parts:
            parts[key] = image_named(req, shown).id
    order = RegisterBundle(
        location=location, project_id=req.project_id, name=args.name, description=args.description,
        architecture=args.architecture, kernel_image_id=parts.get("kernel_id"),
        ramdisk_image_id=parts.get("ramdisk_id"), root_device_name=args.root_device_name,
        block_device_mapping=list(mapping) or None)
    req.begin()
    made = req.site.objects.register_image(order)
    return req.id(made.container_format, made.image_id)


class ImageOnly(Ec2Arguments, frozen=True, kw_only=True):
    image_id: str


def deregister_image(req: Ec2Request, args: ImageOnly) -> Tree:
    """Delete an image.

    Raises InvalidAMIID.NotFound, UnauthorizedOperation if it belongs to another project or is protected.
    """
    req.conductor.delete_image(image_named(req, args.image_id).id)
    return {"return": True}


# -- attributes


class DescribeImageAttribute(Ec2Arguments, frozen=True, kw_only=True):
    image_id: str
    attribute: str


def _launch(image: Image, shown: Tree) -> object:
    return [{"group": ALL}] if image.visibility == "public" else ()


#: Attribute -> function of the image and its DescribeImages view that returns the value. Old clients get the PLAIN ones
#: as plain text.
ATTRIBUTES: Mapping[str, Callable[[Image, Tree], object]] = {
    LAUNCH_PERMISSION: _launch, "blockDeviceMapping": lambda image, shown: shown["blockDeviceMapping"],
    "rootDeviceName": lambda image, shown: shown["rootDeviceName"],
    "kernel": lambda image, shown: shown["kernelId"], "ramdisk": lambda image, shown: shown["ramdiskId"],
    "description": lambda image, shown: shown["description"]}
PLAIN = frozenset({"rootDeviceName"})


def describe_image_attribute(req: Ec2Request, args: DescribeImageAttribute) -> Tree:
    """Return one attribute of an image.

    Raises InvalidParameterValue (InvalidAttribute for old clients), InvalidAMIID.NotFound.
    """
    if args.attribute not in ATTRIBUTES:
        raise bad_attribute(req, args.attribute)
    image = image_named(req, args.image_id)
    shown = views.all_of(req, (image,))[0]
    value = ATTRIBUTES[args.attribute](image, shown)
    is_plain = isinstance(value, (list, tuple)) or (req.is_old and args.attribute in PLAIN)
    return {"imageId": shown["imageId"],
            args.attribute: value if is_plain or value is None else {"value": value}}


class LaunchGroup(msgspec.Struct, frozen=True, kw_only=True):
    group: str | None = None
    user_id: str | None = None


class LaunchPermission(msgspec.Struct, frozen=True, kw_only=True):
    add: tuple[LaunchGroup, ...] = ()
    remove: tuple[LaunchGroup, ...] = ()


class ModifyImageAttribute(Ec2Arguments, frozen=True, kw_only=True):
    image_id: str
    attribute: str | None = None
    operation_type: str | None = None
    user_group: tuple[str, ...] = ()
    user_id: tuple[str, ...] = ()
    value: str | None = None
    launch_permission: LaunchPermission | None = None
    description: AttributeValue | None = None


def modify_image_attribute(req: Ec2Request, args: ModifyImageAttribute) -> Tree:
    """Make an image public or private, or change its description.

    Raises MissingParameter, InvalidParameterValue, InvalidAttribute; UnauthorizedOperation if the image belongs to
    another project, or only administrators may publish images.
    """
    image = image_named(req, args.image_id)
    if args.description is not None or args.attribute == "description":
        text = args.description.value if args.description else args.value or ""
        req.conductor.update_image(image.id, {"description": text})
        return {"return": True}
    is_added = _sharing(req, args)
    req.conductor.update_image(image.id, {"visibility": "public" if is_added else "private"})
    return {"return": True}


def _sharing(req: Ec2Request, args: ModifyImageAttribute) -> bool:
    """Return whether the image will be public."""
    wanted = args.launch_permission
    if wanted is not None:
        groups, is_added = wanted.add or wanted.remove, bool(wanted.add)
        if wanted.add and wanted.remove:
            raise Ec2Error("InvalidParameterCombination", "LaunchPermission has both Add and Remove. Specify one.")
        named, users = [one.group for one in groups], [one.user_id for one in groups if one.user_id]
    else:
        if args.attribute is None:
            raise missing("Attribute")
        if args.attribute != LAUNCH_PERMISSION:
            raise bad_attribute(req, args.attribute)
        if not args.user_group and not args.user_id:
            raise missing("UserGroup")
        if args.operation_type not in ("add", "remove"):
            raise invalid("OperationType", args.operation_type, "It must be add or remove.")
        named, users, is_added = list(args.user_group), list(args.user_id), args.operation_type == "add"
    if users:
        raise unsupported("Share an image with single projects by the image service (image members).")
    if named != [ALL]:
        raise invalid("UserGroup", ", ".join(map(str, named)), f"Only the group {ALL} is supported.")
    return is_added


class UpdateImage(Ec2Arguments, frozen=True, kw_only=True):
    image_id: str
    name: str | None = None
    description: str | None = None


def update_image(req: Ec2Request, args: UpdateImage) -> Tree:
    """Change an image's name or description, and return the image. This action is OpenStack's, not EC2's."""
    image = image_named(req, args.image_id)
    fields = {name: value for name, value in (("name", args.name), ("description", args.description))
              if value is not None}
    after = req.conductor.update_image(image.id, fields)
    return views.all_of(req, (after,))[0]


# -- images of instances


class ImageOfInstance(Ec2Arguments, frozen=True, kw_only=True):
    instance_id: str
    name: str
    description: str | None = None
    no_reboot: bool = False


def create_image(req: Ec2Request, args: ImageOfInstance) -> Tree:
    """Create an image of a volume-backed instance, with snapshots of all its volumes.

    The instance is stopped meanwhile and started again, unless NoReboot is set. Raises InvalidParameterValue if the
    root disk is not a volume, IncorrectInstanceState, OperationNotPermitted if the instance is locked and must stop.
    """
    found = server(req, args.instance_id, SHOW)
    if root_type(found) != "ebs":
        raise invalid("InstanceId", args.instance_id, "The instance does not have a volume attached at root "
                      f"({found.root_device_name}). Use the compute API instead: openstack server image create.")
    req.authorize(VOLUME_BACKED, found.project_id, found.user_id)
    if not args.no_reboot and found.locked and not req.context.is_admin:
        raise errors.server.Locked(uuid=found.uuid)
    order = NewImageOfServer(uuid=found.uuid, name=args.name, metadata_limited=False, stopped=not args.no_reboot,
                             metadata={"description": args.description} if args.description else {})
    return {"imageId": req.id(MACHINE, req.conductor.create_image(order))}

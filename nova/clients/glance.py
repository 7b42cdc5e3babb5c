"""The image service: the calls of its API v2 that nova uses."""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
import requests

from nova import context, errors, failures
from nova.clients.answers import UnreadableError, converted, decoded
from nova.clients.image_data import ImageData
from nova.clients.session import Caller, Credentials, ServiceEndpoint
from nova.conf.glance import GlanceOptions
from nova.model.image.images import Image, ImageQuery, NewImage

TAKING = "os_glance_import_task"
#: Glance's own members of an image's JSON; other text members are custom properties.
BASE_KEYS = frozenset({
    "id", "name", "status", "visibility", "owner", "disk_format", "container_format", "size", "virtual_size",
    "min_disk", "min_ram", "checksum", "os_hash_algo", "os_hash_value", "protected", "created_at", "updated_at",
    "tags", "self", "file", "schema", "locations", "direct_url", "os_hidden", "stores"})


T = TypeVar("T")


class ImageJson(msgspec.Struct, frozen=True, kw_only=True):
    """Glance's own members of an image. ``min_disk`` is in GB, ``min_ram`` in MB; sizes in bytes, null while
    unknown."""

    id: str
    name: str | None = None
    status: str | None = None
    visibility: str | None = None
    owner: str | None = None
    disk_format: str | None = None
    container_format: str | None = None
    size: int | None = None
    virtual_size: int | None = None
    min_disk: int | None = None
    min_ram: int | None = None
    checksum: str | None = None
    os_hash_algo: str | None = None
    os_hash_value: str | None = None
    protected: bool | None = None
    created_at: str | None = None
    updated_at: str | None = None


class LocationJson(msgspec.Struct, frozen=True):
    """A location of an image's data."""

    url: str | None = None


class LocatedJson(msgspec.Struct, frozen=True, kw_only=True):
    """The locations in an image."""

    id: str
    locations: tuple[LocationJson, ...] | None = None
    direct_url: str | None = None


class ImagesPage(msgspec.Struct, frozen=True):
    """A page of images, whose members include custom properties; ``next``: the path of the next page."""

    images: tuple[dict[str, Any], ...]
    next: str | None = None


def of_groups(glance: GlanceOptions, credentials: Credentials) -> Glance:
    """Return a client for the ``[glance]`` group."""
    addresses = (glance.endpoint_override,) if glance.endpoint_override else tuple(glance.api_servers or ())
    service = ServiceEndpoint("image", glance.service_type, tuple(address.rstrip("/") for address in addresses),
                              glance.region_name, tuple(glance.valid_interfaces), glance.num_retries,
                              glance.read_timeout)
    return Glance(Caller(service, credentials))


def _path(image_id: str, rest: str = "") -> str:
    """Return a path. Ids may come from images' properties (a kernel's, for example), so each id is quoted as one
    component."""
    return f"/v2/images/{quote(image_id, safe='')}{rest}"


class Glance:
    """Client of the image service. ``as_user=True`` uses the token of the current request (admission, the old image
    proxy)."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def show(self, image_id: str, as_user: bool = False) -> Image:
        """Return an image. Raises image.NotFound; Unavailable, which names the service."""
        return _shown(self._get(_path(image_id), image_id, as_user), _path(image_id))

    def check(self) -> None:
        """Check that the image service answers. Raises Unavailable; Forbidden if it refuses nova."""
        self._caller.call("GET", "/v2/images", params={"limit": "1"})

    def list(self, query: ImageQuery, as_user: bool = False) -> tuple[Image, ...]:
        """Return a page of images in the service's order; filters are passed unchanged."""
        params: dict[str, object] = dict(query.filters)
        if query.limit is not None:
            params["limit"] = query.limit
        if query.marker:
            params["marker"] = query.marker
        found: list[Image] = []
        path: str | None = "/v2/images"
        while path and (query.limit is None or len(found) < query.limit):
            images, path = self._page(path, as_user, params, marked="marker" in params)
            found += images
            params = {}  # the link contains the parameters
        return tuple(found[:query.limit] if query.limit is not None else found)

    def _page(self, path: str, as_user: bool, params: Mapping[str, object], marked: bool
              ) -> tuple[tuple[Image, ...], str | None]:
        """Return a page of the list, and the path of the next one. ``marked``: a 404 may refer to the marker;
        otherwise, the server has no list, which differs from an empty one."""
        try:
            answer = self._caller.call("GET", path, as_user=as_user, what="such images", params=params)
        except errors.NotFound:
            if marked:
                raise
            raise _strange(path) from None
        try:
            page = decoded(answer, ImagesPage)
            return tuple(map(_image, page.images)), page.next
        except ValueError:  # for example from a proxy in between
            raise _strange(path) from None

    def create(self, image: NewImage, as_user: bool = False) -> Image:
        """Create a record without data; an existing one (of a repeated request) is returned.

        Raises service.Conflict if the id belongs to another image; Forbidden if the image service's quota or policy
        forbids it.
        """
        try:
            answer = self._caller.call("POST", "/v2/images", as_user=as_user, what="such images", json=_new(image))
        except (errors.service.Conflict, errors.service.Unavailable):  # a lost answer may have been a success
            with contextlib.suppress(errors.image.NotFound):
                return self.show(image.id, as_user)
            raise
        return _shown(answer, "/v2/images")

    def update(self, image_id: str, fields: Mapping[str, object], as_user: bool = False) -> Image:
        """Set Glance's own members (``disk_format``, ``min_disk`` ...) and custom properties; return the updated
        image."""
        own = {key: value for key, value in fields.items() if key in BASE_KEYS}
        custom = {key: _text(value) for key, value in fields.items() if key not in BASE_KEYS}
        old = self.show(image_id, as_user).properties if custom else {}
        patch = [{"op": "replace" if key in own or key in old else "add", "path": f"/{_pointer(key)}", "value": value}
                 for key, value in {**own, **custom}.items()]
        return self._patch(image_id, patch, as_user) if patch else self.show(image_id, as_user)

    def send(self, image_id: str, data: Iterable[bytes]) -> None:
        """Upload the data of an image without data, once: ``data`` has a length, and is read as it is sent. The image's
        formats must be set before.

        Raises image.NotFound if it was deleted meanwhile; service.Conflict if it already has data; Forbidden for the
        image service's quota; Unavailable, also if the upload may have succeeded.
        """
        with _naming(image_id), context.waited_for(math.inf, again=False):
            self._caller.call("PUT", _path(image_id, "/file"), log=False, data=data, what=f"image {image_id}",
                              headers={"Content-Type": "application/octet-stream"})

    def open(self, image_id: str, wanted: str = "") -> ImageData:
        """Open the data of an image (see ``nova.clients.image_data.ImageDataSource``). Raises image.NotActive if it
        has no data yet."""
        headers = {"Accept-Encoding": "identity", **({"Range": wanted} if wanted else {})}
        what = f"data of image {image_id}"
        with _naming(image_id):
            answer = self._caller.call("GET", _path(image_id, "/file"), what=what, stream=True, headers=headers)
        if answer.status_code == 204:
            answer.close()
            raise errors.image.NotActive(image_id=image_id, status="without data")
        return ImageData(answer, lambda error: self._caller.translated(error, what))

    def locations(self, image_id: str) -> tuple[str, ...]:
        """Return the addresses of the image's data in its stores, as far as they are visible to nova. They may contain
        passwords."""
        path = _path(image_id, "/locations")
        try:
            found = _read(self._get(path, image_id, as_user=False), tuple[LocationJson, ...], path)
        except (errors.NotFound, errors.Forbidden):  # before Glance 30 they were members of the image
            path = _path(image_id)
            image = _read(self._get(path, image_id, as_user=False), LocatedJson, path)
            found = (*(image.locations or ()), LocationJson(image.direct_url))
        return tuple(one.url for one in found if one.url)

    def add_location(self, image_id: str, url: str) -> None:
        """Register an address as the data of an image without data. The service continues after its answer; until it is
        done, the image has the property TAKING. Raises NotFound for releases before Glance 30; Conflict, Forbidden,
        Invalid."""
        with _naming(image_id):
            self._caller.call("POST", _path(image_id, "/locations"), what=f"image {image_id}", json={"url": url})

    def delete(self, image_id: str, as_user: bool = False) -> None:
        """Delete an image. Raises image.NotFound; Forbidden if it is protected, or belongs to another project."""
        with _naming(image_id):
            self._caller.call("DELETE", _path(image_id), as_user=as_user, what=f"image {image_id}")

    def update_properties(self, image_id: str, items: Mapping[str, str], delete: tuple[str, ...] = (),
                          replace: bool = False, as_user: bool = False) -> Mapping[str, str]:
        """Set ``items`` and remove ``delete`` (with ``replace``: all that are not in ``items``); return the resulting
        properties."""
        old = self.show(image_id, as_user).properties
        gone = (set(old) - set(items)) if replace else (set(delete) & set(old)) - set(items)
        patch = [{"op": "replace" if key in old else "add", "path": f"/{_pointer(key)}", "value": value}
                 for key, value in items.items() if old.get(key) != value]
        patch += [{"op": "remove", "path": f"/{_pointer(key)}"} for key in sorted(gone)]
        return self._patch(image_id, patch, as_user).properties if patch else old

    def _patch(self, image_id: str, patch: Sequence[Mapping[str, object]], as_user: bool) -> Image:
        with _naming(image_id):
            answer = self._caller.call(
                "PATCH", _path(image_id), as_user=as_user, what=f"image {image_id}", json=patch,
                headers={"Content-Type": "application/openstack-images-v2.1-json-patch"})
        return _shown(answer, _path(image_id))

    def _get(self, path: str, image_id: str, as_user: bool) -> requests.Response:
        with _naming(image_id):
            return self._caller.call("GET", path, as_user=as_user, what=f"image {image_id}")


@contextlib.contextmanager
def _naming(image_id: str) -> Iterator[None]:
    """Translate NotFound to image.NotFound for this image. (Glance answers 404 to malformed ids and to images of
    others.)"""
    with failures.translated(errors.NotFound, lambda _: errors.image.NotFound(image_id=image_id)):
        yield


def _read(answer: requests.Response, kind: type[T], path: str) -> T:
    """Return the decoded answer. Raises service.Unavailable for any other content."""
    with failures.replaced(UnreadableError, lambda _: _strange(path)):  # for example from a proxy in between
        return decoded(answer, kind)


def _shown(answer: requests.Response, path: str) -> Image:
    """Return the image in an answer. Raises service.Unavailable for any other content."""
    try:
        return _image(decoded(answer, dict[str, object]))
    except ValueError:
        raise _strange(path) from None


def _strange(path: str) -> errors.NovaError:
    return errors.service.Unavailable(service="image", reason=f"the server that answers {path} is not Glance")


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _time(text: str | None) -> datetime.datetime | None:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None) if text else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _new(image: NewImage) -> dict[str, object]:
    """Return the JSON of a new image; unset values are left to Glance."""
    members = {"id": image.id, "name": _short_letters(image.name), "visibility": image.visibility, "owner": image.owner,
               "disk_format": image.disk_format, "container_format": image.container_format,
               "min_disk": image.min_disk_gb, "min_ram": image.min_ram_mb, "protected": image.protected or None}
    return {**image.properties, **{key: value for key, value in members.items() if value is not None}}


def _short_letters(name: str) -> str:
    """Return the name without characters of four bytes (most emoji), which Glance rejects."""
    return "".join(letter if ord(letter) <= 0xFFFF else "\N{REPLACEMENT CHARACTER}" for letter in name)


def _image(members: Mapping[str, object]) -> Image:
    """Return an image from Glance's JSON. Raises ValueError if it is not one."""
    one = converted(members, ImageJson)
    return Image(
        id=one.id, name=one.name, status=one.status or "unknown", visibility=one.visibility or "private",
        owner=one.owner, disk_format=one.disk_format, container_format=one.container_format, size_bytes=one.size or 0,
        virtual_size_bytes=one.virtual_size or 0, min_disk_gb=one.min_disk or 0, min_ram_mb=one.min_ram or 0,
        checksum=one.checksum, os_hash_algo=one.os_hash_algo, os_hash_value=one.os_hash_value,
        protected=bool(one.protected), created_at=_time(one.created_at), updated_at=_time(one.updated_at),
        properties={key: _text(value) for key, value in members.items() if key not in BASE_KEYS and value is not None})

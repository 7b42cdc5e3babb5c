"""The image service: the calls we use of its API v2."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO
from urllib.parse import quote

import requests

from nova import concurrency, errors
from nova.clients.session import Caller, Credentials, ServiceEndpoint
from nova.model.base import Json
from nova.model.images import Image, ImageQuery, NewImage

LOG = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 16  # what is lost of a stream that breaks off is less than one
UPLOAD_CHUNK_BYTES = 1 << 20

#: Members of an image's JSON that are Glance's own; what else is text is a custom property.
BASE_KEYS = frozenset({
    "id", "name", "status", "visibility", "owner", "disk_format", "container_format", "size", "virtual_size",
    "min_disk", "min_ram", "checksum", "os_hash_algo", "os_hash_value", "protected", "created_at", "updated_at",
    "tags", "self", "file", "schema", "locations", "direct_url", "os_hidden", "stores"})


def of_groups(glance: Json, credentials: Credentials) -> Glance:
    """A client as the ``[glance]`` group says."""
    addresses = (glance.endpoint_override,) if glance.endpoint_override else tuple(glance.api_servers or ())
    service = ServiceEndpoint("image", glance.service_type, tuple(address.rstrip("/") for address in addresses),
                              glance.region_name, tuple(glance.valid_interfaces), glance.num_retries,
                              glance.read_timeout)
    return Glance(Caller(service, credentials))


def _path(image_id: str, rest: str = "") -> str:
    """Ids come from images' own properties, too (a kernel's, say): whatever stands in one is one part of the path."""
    return f"/v2/images/{quote(image_id, safe='')}{rest}"


class Glance:
    """``as_user=True`` speaks with the token of the request being served (admission, the old image proxy)."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def show(self, image_id: str, as_user: bool = False) -> Image:
        """One image. image.NotFound; Unavailable names the service."""
        return _image(self._get(_path(image_id), image_id, as_user))

    def list(self, query: ImageQuery, as_user: bool = False) -> tuple[Image, ...]:
        """A page of images, as the service sorts them; filters go through as they are."""
        params: dict[str, Any] = dict(query.filters)
        if query.limit is not None:
            params["limit"] = query.limit
        if query.marker:
            params["marker"] = query.marker
        found: list[Image] = []
        path: str | None = "/v2/images"
        while path and (query.limit is None or len(found) < query.limit):
            body = self._caller.call("GET", path, as_user=as_user, what="such images", params=params).json()
            found += [_image(item) for item in body["images"]]
            path, params = body.get("next"), {}  # the link has the parameters in it
        return tuple(found[:query.limit] if query.limit is not None else found)

    def create(self, image: NewImage, as_user: bool = False) -> Image:
        """Make a record that waits for its data; one that is there already (a request made twice) is given back.

        service.Conflict when the id is another's; Forbidden when the image service's own quota or policy says no.
        """
        try:
            answer = self._caller.call("POST", "/v2/images", as_user=as_user, what="such images", json=_new(image))
        except (errors.service.Conflict, errors.service.Unavailable):  # an answer that was lost may have been a yes
            with contextlib.suppress(errors.image.NotFound):
                return self.show(image.id, as_user)
            raise
        return _image(answer.json())

    def update(self, image_id: str, fields: Mapping[str, object], as_user: bool = False) -> Image:
        """Set members of Glance's own (``disk_format``, ``min_disk`` ...) and custom properties; what is then there."""
        own = {key: value for key, value in fields.items() if key in BASE_KEYS}
        custom = {key: _text(value) for key, value in fields.items() if key not in BASE_KEYS}
        old = self.show(image_id, as_user).properties if custom else {}
        patch = [{"op": "replace" if key in own or key in old else "add", "path": f"/{_pointer(key)}", "value": value}
                 for key, value in {**own, **custom}.items()]
        return _image(self._patch(image_id, patch, as_user)) if patch else self.show(image_id, as_user)

    def upload(self, image_id: str, source: BinaryIO | str, as_user: bool = False) -> int:
        """Send the data (a path, or a file that can seek: all of it) of an image that has none; its length in bytes.

        The image's formats must be set before. Nothing to do when it has just this much data already: an upload that
        is repeated has been done. image.NotFound (deleted meanwhile); service.Conflict (it has other data); Forbidden
        (the image service's quota); Unavailable; OSError from the disk as it is.
        """
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(open(source, "rb")) if isinstance(source, str) else source
            data = _Data(file)
            with _naming(image_id):
                try:
                    self._caller.call("PUT", _path(image_id, "/file"), as_user=as_user, log=False, data=data,
                                      what=f"image {image_id}", headers={"Content-Type": "application/octet-stream"})
                except errors.service.Conflict:
                    there = self.show(image_id, as_user)
                    if there.status != "active" or there.size_bytes != len(data):
                        raise
            return len(data)

    def delete(self, image_id: str, as_user: bool = False) -> None:
        """image.NotFound; Forbidden when it is protected or another's."""
        with _naming(image_id):
            self._caller.call("DELETE", _path(image_id), as_user=as_user, what=f"image {image_id}")

    def update_properties(self, image_id: str, items: Mapping[str, str], delete: tuple[str, ...] = (),
                          replace: bool = False, as_user: bool = False) -> Mapping[str, str]:
        """Set ``items``, take ``delete`` away (with ``replace``: all that is not in ``items``); what is then there."""
        old = self.show(image_id, as_user).properties
        gone = (set(old) - set(items)) if replace else (set(delete) & set(old)) - set(items)
        patch = [{"op": "replace" if key in old else "add", "path": f"/{_pointer(key)}", "value": value}
                 for key, value in items.items() if old.get(key) != value]
        patch += [{"op": "remove", "path": f"/{_pointer(key)}"} for key in sorted(gone)]
        return _image(self._patch(image_id, patch, as_user)).properties if patch else old

    def _patch(self, image_id: str, patch: Sequence[Mapping[str, object]], as_user: bool) -> dict[str, object]:
        with _naming(image_id):
            return self._caller.call(
                "PATCH", _path(image_id), as_user=as_user, what=f"image {image_id}", json=patch,
                headers={"Content-Type": "application/openstack-images-v2.1-json-patch"}).json()

    def download(self, image: Image, path: str, limit_bytes: int | None = None) -> int:
        """Write the image's data to the new file ``path`` (0600), checked against its hash; its length in bytes.

        A broken stream goes on where it broke off. image.TooLong beyond ``limit_bytes`` (or the size the service
        told); image.Corrupt; Unavailable; OSError from the disk as it is. The caller removes what a failure leaves.
        """
        limit = limit_bytes if not image.size_bytes else min(image.size_bytes, limit_bytes or image.size_bytes)
        opened = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(opened, "wb", buffering=0) as target:
            self._stream_all(image, target, limit)
            length = target.tell()
            concurrency.run_in_thread(os.fsync, target.fileno())
        _check_hash(image, path)
        return length

    def _stream_all(self, image: Image, target: BinaryIO, limit: int | None) -> None:
        tries = self._caller.service.retries
        for attempt in range(tries + 1):
            try:
                return self._stream(image, target, limit)
            except errors.service.Unavailable:
                if attempt == tries:
                    raise
                LOG.warning("Download of image %s broke off at byte %d; going on", image.id, target.tell())
                concurrency.sleep(min(self._caller.service.retry_wait_s * 2 ** attempt, 5))

    def _stream(self, image: Image, target: BinaryIO, limit: int | None) -> None:
        begin = target.tell()
        headers = {"Range": f"bytes={begin}-"} if begin else {}
        with _naming(image.id):
            answer = self._caller.call("GET", _path(image.id, "/file"), what=f"data of image {image.id}",
                                       stream=True, headers=headers)
        with contextlib.closing(answer):
            if begin and answer.status_code != 206:  # a service that can not resume begins again
                target.seek(0)
                target.truncate()
            for chunk in self._chunks(answer, image.id):
                if limit is not None and target.tell() + len(chunk) > limit:
                    raise errors.image.TooLong(image_id=image.id, limit=limit)
                _write_all(target, chunk)
        if image.size_bytes and target.tell() < image.size_bytes:
            raise errors.service.Unavailable(service="image", reason=f"the data of image {image.id} ended too early")

    def _chunks(self, answer: requests.Response, image_id: str) -> Iterator[bytes]:
        try:
            yield from answer.iter_content(CHUNK_BYTES)
        except (requests.RequestException, OSError) as error:
            raise self._caller.translated(error, f"data of image {image_id}") from error

    def _get(self, path: str, image_id: str, as_user: bool) -> dict[str, Json]:
        with _naming(image_id):
            return self._caller.call("GET", path, as_user=as_user, what=f"image {image_id}").json()


class _Data:
    """A file as the body of a request: each attempt sends it from its beginning."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._length = file.seek(0, os.SEEK_END)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        while chunk := self._file.read(UPLOAD_CHUNK_BYTES):
            yield chunk


@contextlib.contextmanager
def _naming(image_id: str) -> Iterator[None]:
    """A thing that is missing there is this image. (Glance says 404 to odd ids and to images of others.)"""
    try:
        yield
    except errors.NotFound as error:
        raise errors.image.NotFound(image_id=image_id) from error


def _write_all(target: BinaryIO, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[target.write(view) or 0:]


def _check_hash(image: Image, path: str) -> None:
    algorithm, expected = image.os_hash_algo, image.os_hash_value
    if not (algorithm and expected):
        algorithm, expected = "md5", image.checksum
    if not expected or algorithm not in hashlib.algorithms_available:
        LOG.warning("Image %s has no hash that can be checked", image.id)
        return
    if concurrency.run_in_thread(_digest, path, algorithm) != expected:
        raise errors.image.Corrupt(image_id=image.id, algorithm=algorithm)


def _digest(path: str, algorithm: str) -> str:
    with open(path, "rb") as data:
        return hashlib.file_digest(data, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def _pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _time(text: str | None) -> datetime.datetime | None:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=None) if text else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _new(image: NewImage) -> dict[str, Json]:
    """A new image as Glance takes it: what is not said is left to it."""
    members = {"id": image.id, "name": _short_letters(image.name), "visibility": image.visibility, "owner": image.owner,
               "disk_format": image.disk_format, "container_format": image.container_format,
               "min_disk": image.min_disk_gb, "min_ram": image.min_ram_mb, "protected": image.protected or None}
    return {**image.properties, **{key: value for key, value in members.items() if value is not None}}


def _short_letters(name: str) -> str:
    """The name without letters of four bytes (most emoji), for which Glance refuses it."""
    return "".join(letter if ord(letter) <= 0xFFFF else "\N{REPLACEMENT CHARACTER}" for letter in name)


def _image(body: Mapping[str, Json]) -> Image:
    """An image of Glance's JSON. ``min_disk`` is in GB, ``min_ram`` in MB; sizes in bytes, null while unknown."""
    return Image(
        id=body["id"], name=body.get("name"), status=body.get("status") or "unknown",
        visibility=body.get("visibility") or "private", owner=body.get("owner"), disk_format=body.get("disk_format"),
        container_format=body.get("container_format"), size_bytes=body.get("size") or 0,
        virtual_size_bytes=body.get("virtual_size") or 0, min_disk_gb=body.get("min_disk") or 0,
        min_ram_mb=body.get("min_ram") or 0, checksum=body.get("checksum"), os_hash_algo=body.get("os_hash_algo"),
        os_hash_value=body.get("os_hash_value"), protected=bool(body.get("protected")),
        properties={key: _text(value) for key, value in body.items() if key not in BASE_KEYS and value is not None},
        created_at=_time(body.get("created_at")), updated_at=_time(body.get("updated_at")))

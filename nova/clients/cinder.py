"""The volume service: the calls we use of Cinder's API v3.

``as_user`` asks with the token of the request that is served, and with our own beside it; everything else is asked with
our own credentials. A write that may not be repeated (POST) is tried once: whoever makes it looks for what a lost
answer left. How a volume is reached (:class:`nova.model.volumes.VolumeConnection`) may hold secrets, so keystoneauth
logs no call that carries it.

Every call: service.Forbidden (the user may not), volume.Credentials (we may not), volume.Away, volume.NoService,
volume.WrongAddress.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar
from urllib.parse import parse_qsl, quote, urlsplit

import requests

from nova import concurrency, errors
from nova.clients import cinder_values as values
from nova.clients.cinder_caller import CinderCaller, Version
from nova.clients.session import Credentials, ServiceEndpoint
from nova.model.base import Json
from nova.model.volumes import (
    RESERVED,
    SNAPSHOT,
    Connector,
    NewVolume,
    NewVolumeSnapshot,
    Volume,
    VolumeAttachment,
    VolumeEncryption,
    VolumeLimits,
    VolumeMetadataChange,
    VolumeQuery,
    VolumeSnapshot,
)

DEADLINE = 1.5  # of read_timeout: for a call's attempts together
DOUBTS_S = (0.0, 1.0, 3.0)  # how long before each look for what a lost answer left

#: Versions that calls are made in, the best one first.
VOLUMES: tuple[Version, ...] = ((3, 69), (3, 48), (3, 0))  # shared_targets may be null; there is shared_targets
ATTACHMENTS: tuple[Version, ...] = ((3, 44),)
REIMAGE: tuple[Version, ...] = ((3, 68),)

LOGGERS = ("nova.clients.cinder_caller", "os_brick")  # that [cinder]debug makes talk

T = TypeVar("T")


def of_groups(cinder: Json, credentials: Credentials) -> Cinder:
    """A client as the ``[cinder]`` group says. config.CatalogInfo."""
    if cinder.debug:
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.DEBUG)
    kind, name, interface = _catalog_info(cinder.catalog_info)
    addresses = (cinder.endpoint_template.rstrip("/"),) if cinder.endpoint_template else ()
    patience_s = float(getattr(cinder, "timeout", None) or cinder.read_timeout)  # timeout is keystoneauth's word
    service = ServiceEndpoint("volume", kind, addresses, cinder.os_region_name, (interface,),
                              cinder.http_retries, patience_s, deadline_s=DEADLINE * patience_s,
                              service_name=name or None)
    return Cinder(CinderCaller(service, credentials))


def _catalog_info(text: str) -> Sequence[str]:
    parts = text.split(":")
    if len(parts) != 3 or not parts[0] or not parts[2]:
        raise errors.config.CatalogInfo()
    return parts


class Cinder:
    """``doubts_s``: how long before each look for an attachment whose making was not answered."""

    def __init__(self, caller: CinderCaller, doubts_s: Sequence[float] = DOUBTS_S) -> None:
        self._caller, self._patient, self._doubts_s = caller, caller.patient(), doubts_s

    # -- volumes

    def get(self, volume_id: str, as_user: bool = False) -> Volume:
        """volume.NotFound."""
        with _missing(errors.volume.NotFound(volume=volume_id)):
            return values.volume(self._read("GET", _path("volumes", volume_id), "volume", as_user=as_user,
                                            versions=VOLUMES))

    def list(self, query: VolumeQuery, as_user: bool = False) -> tuple[Volume, ...]:
        """A page of the asking project's volumes, the newest first."""
        return self._all("volumes/detail", "volumes", values.volume, _slice(query), query.limit, as_user=as_user)

    def create(self, new: NewVolume, as_user: bool = False) -> Volume:
        """A volume that is still ``creating``, of the asking project. volume.Refused, volume.OverQuota,
        volume.SnapshotNotFound, volume.TypeNotFound."""
        with _missing(errors.volume.TypeNotFound(volume_type=new.volume_type),
                      errors.volume.SnapshotNotFound(snapshot=new.snapshot_id)):
            return values.volume(self._read("POST", "/volumes", "volume", as_user=as_user,
                                            json={"volume": values.new_volume(new)}))

    def delete(self, volume_id: str, as_user: bool = False) -> None:
        """It goes by and by. volume.NotFound; volume.Refused: it is in use, or has snapshots."""
        with _missing(errors.volume.NotFound(volume=volume_id)):
            self._call("DELETE", _path("volumes", volume_id), as_user=as_user)

    def begin_detaching(self, volume_id: str, as_user: bool = False) -> None:
        """From ``in-use`` to ``detaching``. volume.NotFound; volume.Refused: it is not in use."""
        self._act(volume_id, "os-begin_detaching", {}, as_user)

    def roll_detaching(self, volume_id: str, as_user: bool = False) -> None:
        """From ``detaching`` back to ``in-use``. volume.NotFound; volume.Refused."""
        self._act(volume_id, "os-roll_detaching", {}, as_user)

    def complete_migration(self, old_id: str, new_id: str, error: bool = False, as_user: bool = False) -> str:
        """End a swap that Cinder began; the id that the data have from now on. From a volume that Cinder does not move
        (its ``migration_status`` is None) it takes the attachments: look first. volume.NotFound, volume.Refused."""
        with _missing(errors.volume.NotFound(volume=old_id), errors.volume.NotFound(volume=new_id)):
            body = {"os-migrate_volume_completion": {"new_volume": new_id, "error": error}}
            return str(self._read("POST", _path("volumes", old_id, "/action"), "save_volume_id", as_user=as_user,
                                  json=body))

    def reimage(self, volume_id: str, image_id: str, reserved: bool = True, as_user: bool = False) -> None:
        """Write an image over the volume: it is ``downloading`` until that is done. ``reserved``: it may be so now.
        volume.NotFound, image.NotFound, volume.Refused; volume.TooOld below 3.68."""
        self._act(volume_id, "os-reimage", {"image_id": image_id, "reimage_reserved": reserved}, as_user, REIMAGE,
                  errors.image.NotFound(image_id=image_id))

    def encryption(self, volume_id: str, as_user: bool = False) -> VolumeEncryption | None:
        """None: it is not encrypted. volume.NotFound."""
        with _missing(errors.volume.NotFound(volume=volume_id)):
            return values.encryption(self._json("GET", _path("volumes", volume_id, "/encryption"), as_user=as_user))

    def types(self, as_user: bool = False) -> Mapping[str, str]:
        """The name of each volume type, by its id and by its name."""
        found = self._all("types", "volume_types", lambda one: (one["id"], one["name"]), {}, links="volume_type_links",
                          as_user=as_user)
        return {key: name for type_id, name in found for key in (type_id, name)}

    def change_metadata(self, change: VolumeMetadataChange, as_user: bool = False) -> None:
        """A key to delete that is not there is no error. volume.NotFound, volume.SnapshotNotFound; volume.Refused: a
        key or value is too long."""
        collection, missing = (
            ("snapshots", errors.volume.SnapshotNotFound(snapshot=change.id)) if change.kind == SNAPSHOT
            else ("volumes", errors.volume.NotFound(volume=change.id)))
        with _missing(missing):
            if change.items:
                self._call("POST", _path(collection, change.id, "/metadata"), as_user=as_user,
                           json={"metadata": dict(change.items)})
            for key in change.delete:
                with contextlib.suppress(errors.NotFound):
                    self._call("DELETE", _path(collection, change.id, f"/metadata/{quote(key, safe='')}"),
                               as_user=as_user)

    # -- snapshots

    def get_snapshot(self, snapshot_id: str, as_user: bool = False) -> VolumeSnapshot:
        """volume.SnapshotNotFound."""
        with _missing(errors.volume.SnapshotNotFound(snapshot=snapshot_id)):
            return values.snapshot(self._read("GET", _path("snapshots", snapshot_id), "snapshot", as_user=as_user))

    def list_snapshots(self, query: VolumeQuery, as_user: bool = False) -> tuple[VolumeSnapshot, ...]:
        """A page of the asking project's snapshots, the newest first."""
        return self._all("snapshots/detail", "snapshots", values.snapshot, _slice(query), query.limit, as_user=as_user)

    def find_snapshots(self, name: str) -> tuple[VolumeSnapshot, ...]:
        """Those of exactly this name, of any project. (A Cinder whose operator took this filter away gives all.)"""
        found = self._all("snapshots/detail", "snapshots", values.snapshot, {"all_tenants": "1", "name": name})
        return tuple(one for one in found if one.name == name)

    def create_snapshot(self, new: NewVolumeSnapshot, as_user: bool = False) -> VolumeSnapshot:
        """One that is still ``creating``. volume.NotFound, volume.Refused, volume.OverQuota."""
        with _missing(errors.volume.NotFound(volume=new.volume_id)):
            return values.snapshot(self._read("POST", "/snapshots", "snapshot", as_user=as_user,
                                              json={"snapshot": values.new_snapshot(new)}))

    def delete_snapshot(self, snapshot_id: str, as_user: bool = False) -> None:
        """It goes by and by. volume.SnapshotNotFound, volume.Refused."""
        with _missing(errors.volume.SnapshotNotFound(snapshot=snapshot_id)):
            self._call("DELETE", _path("snapshots", snapshot_id), as_user=as_user)

    def set_snapshot_status(self, snapshot_id: str, status: str, progress: str | None = None,
                            as_user: bool = False) -> None:
        """Of a snapshot that a host makes or deletes: ``creating``, ``deleting``, ``error`` or ``error_deleting``.
        ``progress`` ``90%``: the host's part is over. volume.SnapshotNotFound, volume.Refused."""
        fields = {"status": status} if progress is None else {"status": status, "progress": progress}
        with _missing(errors.volume.SnapshotNotFound(snapshot=snapshot_id)):
            self._call("POST", _path("snapshots", snapshot_id, "/action"), as_user=as_user,
                              json={"os-update_snapshot_status": fields})

    def limits(self, as_user: bool = False) -> VolumeLimits:
        """How many snapshots the asking project has, and may have."""
        return values.limits(self._read("GET", "/limits", "limits", as_user=as_user)["absolute"])

    # -- attachments

    def reserve(self, volume_id: str, server_uuid: str, known: Collection[str] = (), as_user: bool = False
                ) -> VolumeAttachment:
        """An attachment that no host has yet; the volume is ``reserved``, or stays in use by this server. ``known``:
        attachments of both that were there before, so that a lost answer's is told from them.

        volume.NotFound; volume.Refused: it is not available; volume.Away, also when it may have been made.
        """
        try:
            return self._attach({"volume_uuid": volume_id, "instance_uuid": server_uuid}, volume_id, as_user)
        except errors.volume.Away:
            found = self._look_again(volume_id, server_uuid, known)
            if found is None:
                raise
            return found

    def find_reserved(self, volume_id: str, server_uuid: str, known: Collection[str] = ()) -> VolumeAttachment | None:
        """An attachment of both that no host has, and that is not ``known``; None: there is none."""
        for one in self.list_attachments(server_uuid, volume_id):
            if one.status == RESERVED and one.id not in known:
                with contextlib.suppress(errors.volume.AttachmentNotFound):
                    found = self.get_attachment(one.id)  # the list does not say whether a host has it
                    if found.connection is None:
                        return found
        return None

    def attach(self, volume_id: str, server_uuid: str, connector: Connector, mountpoint: str | None = None,
               as_user: bool = False) -> VolumeAttachment:
        """Reserve and connect at once: a second host's, while a server moves; the volume is ``attaching`` until it is
        completed or deleted. ``mountpoint``: such as ``/dev/vdb``.

        volume.NotFound, volume.Refused; volume.Away, also when it may have been made (:meth:`list_attachments`).
        """
        return self._attach({"volume_uuid": volume_id, "instance_uuid": server_uuid,
                             "connector": _connector(connector, mountpoint)}, volume_id, as_user)

    def connect(self, attachment_id: str, connector: Connector, mountpoint: str | None = None, as_user: bool = False
                ) -> VolumeAttachment:
        """Let a host in; how it reaches the volume, which is ``attaching`` then. volume.AttachmentNotFound,
        volume.Refused; service.Conflict: another attachment of the volume is connected, and it is of one server."""
        body = {"attachment": {"connector": _connector(connector, mountpoint)}}
        with _missing(errors.volume.AttachmentNotFound(attachment=attachment_id)):
            return values.attachment(self._read("PUT", _path("attachments", attachment_id), "attachment",
                                                caller=self._patient, as_user=as_user, versions=ATTACHMENTS, log=False,
                                                json=body))

    def complete(self, attachment_id: str, as_user: bool = False) -> None:
        """The server has it: the volume is ``in-use``. volume.AttachmentNotFound, volume.Refused."""
        with _missing(errors.volume.AttachmentNotFound(attachment=attachment_id)):
            self._call("POST", _path("attachments", attachment_id, "/action"), as_user=as_user,
                              versions=ATTACHMENTS, json={"os-complete": {}})

    def get_attachment(self, attachment_id: str, as_user: bool = False) -> VolumeAttachment:
        """With its connection, where a host has it. volume.AttachmentNotFound."""
        with _missing(errors.volume.AttachmentNotFound(attachment=attachment_id)):
            return values.attachment(self._read("GET", _path("attachments", attachment_id), "attachment",
                                                as_user=as_user, versions=ATTACHMENTS, log=False))

    def list_attachments(self, server_uuid: str, volume_id: str | None = None) -> tuple[VolumeAttachment, ...]:
        """Those of a server of any project, without their connections."""
        params = {"instance_id": server_uuid, "volume_id": volume_id, "all_tenants": "1"}
        return self._all("attachments", "attachments", values.attachment,
                         {key: value for key, value in params.items() if value}, versions=ATTACHMENTS)

    def delete_attachment(self, attachment_id: str, as_user: bool = False) -> None:
        """Nothing when it is gone already. volume.InUseByService: Cinder did not take our service token."""
        try:
            self._call("DELETE", _path("attachments", attachment_id), self._patient, as_user=as_user,
                       versions=ATTACHMENTS)
        except errors.service.ResourceNotFound:
            return
        except errors.service.Conflict as error:
            raise errors.volume.InUseByService(attachment=attachment_id, reason=error.data["reason"]) from error

    # -- inside

    def _act(self, volume_id: str, action: str, arguments: Mapping[str, Json], as_user: bool,
             versions: tuple[Version, ...] = (), *others: errors.NovaError) -> None:
        with _missing(errors.volume.NotFound(volume=volume_id), *others):
            self._call("POST", _path("volumes", volume_id, "/action"), as_user=as_user, versions=versions,
                              json={action: arguments})

    def _attach(self, attachment: Mapping[str, Json], volume_id: str, as_user: bool) -> VolumeAttachment:
        with _missing(errors.volume.NotFound(volume=volume_id)):
            return values.attachment(self._read("POST", "/attachments", "attachment", as_user=as_user,
                                                versions=ATTACHMENTS, log=False, json={"attachment": attachment}))

    def _look_again(self, volume_id: str, server_uuid: str, known: Collection[str]) -> VolumeAttachment | None:
        """What a request without an answer made. (Cinder may still be at it: one look is not enough.)"""
        for pause in self._doubts_s:
            concurrency.sleep(pause)
            with contextlib.suppress(errors.volume.Away):
                found = self.find_reserved(volume_id, server_uuid, known)
                if found is not None:
                    return found
        return None

    def _read(self, method: str, path: str, key: str, caller: CinderCaller | None = None, **kwargs: Json) -> Json:
        body = self._json(method, path, caller, **kwargs)
        if body.get(key) is None:
            raise _strange(method, path)
        return body[key]

    def _json(self, method: str, path: str, caller: CinderCaller | None = None, **kwargs: Json) -> dict[str, Json]:
        answer = self._call(method, path, caller, **kwargs)
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):  # of a proxy before it, say
            raise _strange(method, path)
        return body

    def _call(self, method: str, path: str, caller: CinderCaller | None = None, versions: tuple[Version, ...] = (),
              **kwargs: Json) -> requests.Response:
        caller = caller or self._caller
        return caller.call(method, path, headers=caller.headers(versions), **kwargs)

    def _all(self, path: str, key: str, read: Callable[[Mapping[str, Json]], T], params: Mapping[str, Json],
             limit: int | None = None, links: str = "", **kwargs: Json) -> tuple[T, ...]:
        """Every page of a list, up to ``limit`` entries. ``links``: what the way to the next one is called, where that
        is not the list's own name."""
        found: list[T] = []
        following: Sequence[tuple[str, Json]] | None = list(params.items())
        while following is not None and (limit is None or len(found) < limit):
            body = self._page(path, key, params=following, **kwargs)
            found += [read(one) for one in body[key]]
            following = _next(body.get(links or f"{key}_links") or ()) if body[key] else None
        return tuple(itertools.islice(found, limit))

    def _page(self, path: str, key: str, **kwargs: Json) -> dict[str, Json]:
        """A page of a list. Whoever has no such list is not Cinder: that is no empty one, nor a thing that is
        missing."""
        try:
            body = self._json("GET", f"/{path}", **kwargs)
        except errors.service.ResourceNotFound:
            raise _strange("GET", path) from None
        if not isinstance(body.get(key), list):
            raise _strange("GET", path)
        return body


def _path(noun: str, key: str, rest: str = "") -> str:
    """Ids come from users, too: whatever stands in one is one part of the path."""
    return f"/{noun}/{quote(key, safe='')}{rest}"


def _slice(query: VolumeQuery) -> dict[str, Json]:
    given = {"limit": query.limit, "offset": query.offset or None}
    return {key: value for key, value in given.items() if value is not None}


def _connector(connector: Connector, mountpoint: str | None) -> dict[str, Json]:
    """The API has no other place for the name that the server sees the volume at."""
    return {**connector, "mountpoint": mountpoint} if mountpoint else dict(connector)


@contextlib.contextmanager
def _missing(*candidates: errors.NovaError) -> Iterator[None]:
    """When something is missing, that one of ``candidates`` says so whose thing Cinder names; else the first."""
    try:
        yield
    except errors.service.ResourceNotFound as absent:
        said = str(absent.data.get("reason"))
        raise next((one for one in candidates if any(key and str(key) in said for key in one.data.values())),
                   candidates[0]) from absent


def _strange(method: str, path: str) -> errors.NovaError:
    return errors.volume.Away(reason=f"what answers {method} {path} is not Cinder")


def _next(links: Sequence[Mapping[str, str]]) -> list[tuple[str, Json]] | None:
    """The parameters of the next page. (Its host is what the service thinks it is called: not always how we get there.)
    An offset counts from the marker there, so it is not said again."""
    for link in links:
        if link.get("rel") == "next":
            return [one for one in parse_qsl(urlsplit(link["href"]).query) if one[0] != "offset"]
    return None

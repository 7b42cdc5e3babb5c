"""The volume service: the calls of Cinder's API v3 that nova uses.

``as_user`` calls use the token of the current request, together with nova's service token; other calls use nova's own
credentials. A write that is not idempotent (POST) is attempted once; the caller checks for the result of a lost answer.
The connection data of a volume (:class:`nova.model.volumes.VolumeConnection`) may contain secrets, so keystoneauth logs
no call that carries them.

Every call raises service.Forbidden if the user lacks permission, volume.Credentials if nova does, volume.Away,
volume.NoService, volume.WrongAddress.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar, Unpack
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec
import requests

from nova import concurrency, errors, failures
from nova.clients import cinder_values as values
from nova.clients.answers import NULL, PageLink, UnreadableError, decoded, decoded_list, links_of
from nova.clients.cinder_caller import CinderCaller, Version
from nova.clients.cinder_values import Resource
from nova.clients.session import CallOptions, Credentials, ServiceEndpoint
from nova.conf.cinder import CinderOptions
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

DEADLINE = 1.5  # multiple of read_timeout: for all attempts of a call
DOUBTS_S = (0.0, 1.0, 3.0)  # pauses before the checks for the result of a lost answer

#: Versions of calls, in order of preference.
VOLUMES: tuple[Version, ...] = ((3, 69), (3, 48), (3, 0))  # 3.69: null shared_targets; 3.48: shared_targets
ATTACHMENTS: tuple[Version, ...] = ((3, 44),)
REIMAGE: tuple[Version, ...] = ((3, 68),)

LOGGERS = ("nova.clients.cinder_caller", "os_brick")  # loggers that [cinder]debug sets to debug level

R = TypeVar("R")
T = TypeVar("T")


def of_groups(cinder: CinderOptions, credentials: Credentials) -> Cinder:
    """Return a client for the ``[cinder]`` group. Raises config.CatalogInfo."""
    if cinder.debug:
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.DEBUG)
    kind, name, interface = _catalog_info(cinder.catalog_info)
    addresses = (cinder.endpoint_template.rstrip("/"),) if cinder.endpoint_template else ()
    timeout_s = float(getattr(cinder, "timeout", None) or cinder.read_timeout)  # timeout is keystoneauth's name
    service = ServiceEndpoint("volume", kind, addresses, cinder.os_region_name, (interface,),
                              cinder.http_retries, timeout_s, deadline_s=DEADLINE * timeout_s,
                              service_name=name or None)
    return Cinder(CinderCaller(service, credentials))


def _catalog_info(text: str) -> Sequence[str]:
    parts = text.split(":")
    if len(parts) != 3 or not parts[0] or not parts[2]:
        raise errors.config.CatalogInfo()
    return parts


class VersionedCall(CallOptions, total=False):
    """Arguments of a call. ``versions``: as in :meth:`CinderCaller.headers`."""

    versions: tuple[Version, ...]


class Cinder:
    """Client of the volume service. ``doubts_s``: pauses before each check for an attachment whose creation was not
    answered."""

    def __init__(self, caller: CinderCaller, doubts_s: Sequence[float] = DOUBTS_S) -> None:
        self._caller, self._patient, self._doubts_s = caller, caller.patient(), doubts_s

    # -- volumes

    def get(self, volume_id: str, as_user: bool = False) -> Volume:
        """Return a volume. Raises volume.NotFound."""
        with _missing(errors.volume.NotFound(volume=volume_id)):
            return self._read(values.VOLUME, "GET", _path("volumes", volume_id), as_user=as_user,
                              versions=VOLUMES)

    def list(self, query: VolumeQuery, as_user: bool = False) -> tuple[Volume, ...]:
        """Return a page of the calling project's volumes, newest first."""
        return self._all("volumes/detail", values.VOLUME, _slice(query), query.limit, as_user=as_user)

    def create(self, new: NewVolume, as_user: bool = False) -> Volume:
        """Create a volume of the calling project; its status is still ``creating``. Raises volume.Refused,
        volume.OverQuota, volume.SnapshotNotFound, volume.TypeNotFound."""
        with _missing(errors.volume.TypeNotFound(volume_type=new.volume_type),
                      errors.volume.SnapshotNotFound(snapshot=new.snapshot_id)):
            return self._read(values.VOLUME, "POST", "/volumes", as_user=as_user,
                              json={"volume": values.new_volume(new)})

    def delete(self, volume_id: str, as_user: bool = False) -> None:
        """Delete a volume, which Cinder completes later. Raises volume.NotFound; volume.Refused if it is in use, or has
        snapshots."""
        with _missing(errors.volume.NotFound(volume=volume_id)):
            self._call("DELETE", _path("volumes", volume_id), as_user=as_user)

    def begin_detaching(self, volume_id: str, as_user: bool = False) -> None:
        """Change the status from ``in-use`` to ``detaching``. Raises volume.NotFound; volume.Refused if it is not in
        use."""
        self._act(volume_id, "os-begin_detaching", {}, as_user)

    def roll_detaching(self, volume_id: str, as_user: bool = False) -> None:
        """Change the status from ``detaching`` back to ``in-use``. Raises volume.NotFound, volume.Refused."""
        self._act(volume_id, "os-roll_detaching", {}, as_user)

    def complete_migration(self, old_id: str, new_id: str, error: bool = False, as_user: bool = False) -> str:
        """Complete a swap that Cinder began, and return the new id of the data. A volume that Cinder is not migrating
        (``migration_status`` None) loses its attachments, so check that first. Raises volume.NotFound,
        volume.Refused."""
        with _missing(errors.volume.NotFound(volume=old_id), errors.volume.NotFound(volume=new_id)):
            body = {"os-migrate_volume_completion": {"new_volume": new_id, "error": error}}
            return self._read(values.SAVED_ID, "POST", _path("volumes", old_id, "/action"), as_user=as_user, json=body)

    def reimage(self, volume_id: str, image_id: str, reserved: bool = True, as_user: bool = False) -> None:
        """Write an image over the volume, which has the status ``downloading`` until that is done. ``reserved``: also
        for a reserved volume. Raises volume.NotFound, image.NotFound, volume.Refused; volume.TooOld below 3.68."""
        self._act(volume_id, "os-reimage", {"image_id": image_id, "reimage_reserved": reserved}, as_user, REIMAGE,
                  errors.image.NotFound(image_id=image_id))

    def encryption(self, volume_id: str, as_user: bool = False) -> VolumeEncryption | None:
        """Return the encryption of a volume; None if it is not encrypted. Raises volume.NotFound."""
        with _missing(errors.volume.NotFound(volume=volume_id)):
            return values.encryption(self._json(values.EncryptionAnswer, "GET",
                                                _path("volumes", volume_id, "/encryption"), as_user=as_user))

    def types(self, as_user: bool = False) -> Mapping[str, str]:
        """Return the name of each volume type, by its id and by its name."""
        found = self._all("types", values.TYPE, {}, as_user=as_user)
        return {key: one.name for one in found for key in (one.id, one.name)}

    def change_metadata(self, change: VolumeMetadataChange, as_user: bool = False) -> None:
        """Set and delete metadata. Deleting an absent key is not an error. Raises volume.NotFound,
        volume.SnapshotNotFound; volume.Refused if a key or value is too long."""
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
        """Return a volume snapshot. Raises volume.SnapshotNotFound."""
        with _missing(errors.volume.SnapshotNotFound(snapshot=snapshot_id)):
            return self._read(values.SNAPSHOT, "GET", _path("snapshots", snapshot_id), as_user=as_user)

    def list_snapshots(self, query: VolumeQuery, as_user: bool = False) -> tuple[VolumeSnapshot, ...]:
        """Return a page of the calling project's snapshots, newest first."""
        return self._all("snapshots/detail", values.SNAPSHOT, _slice(query), query.limit, as_user=as_user)

    def find_snapshots(self, name: str) -> tuple[VolumeSnapshot, ...]:
        """Return the snapshots of exactly this name, of any project. (A Cinder whose operator removed this filter
        returns all snapshots, so the names are compared here.)"""
        found = self._all("snapshots/detail", values.SNAPSHOT, {"all_tenants": "1", "name": name})
        return tuple(one for one in found if one.name == name)

    def create_snapshot(self, new: NewVolumeSnapshot, as_user: bool = False) -> VolumeSnapshot:
        """Create a volume snapshot; its status is still ``creating``. Raises volume.NotFound, volume.Refused,
        volume.OverQuota."""
        with _missing(errors.volume.NotFound(volume=new.volume_id)):
            return self._read(values.SNAPSHOT, "POST", "/snapshots", as_user=as_user,
                              json={"snapshot": values.new_snapshot(new)})

    def delete_snapshot(self, snapshot_id: str, as_user: bool = False) -> None:
        """Delete a volume snapshot, which Cinder completes later. Raises volume.SnapshotNotFound, volume.Refused."""
        with _missing(errors.volume.SnapshotNotFound(snapshot=snapshot_id)):
            self._call("DELETE", _path("snapshots", snapshot_id), as_user=as_user)

    def set_snapshot_status(self, snapshot_id: str, status: str, progress: str | None = None,
                            as_user: bool = False) -> None:
        """Set the status of a snapshot that a host makes or deletes: ``creating``, ``deleting``, ``error`` or
        ``error_deleting``. ``progress`` ``90%``: the host's part is complete. Raises volume.SnapshotNotFound,
        volume.Refused."""
        fields = {"status": status} if progress is None else {"status": status, "progress": progress}
        with _missing(errors.volume.SnapshotNotFound(snapshot=snapshot_id)):
            self._call("POST", _path("snapshots", snapshot_id, "/action"), as_user=as_user,
                              json={"os-update_snapshot_status": fields})

    def limits(self, as_user: bool = False) -> VolumeLimits:
        """Return the calling project's number of snapshots, and their limit."""
        return self._read(values.LIMITS, "GET", "/limits", as_user=as_user)

    # -- attachments

    def reserve(self, volume_id: str, server_uuid: str, known: Collection[str] = (), as_user: bool = False
                ) -> VolumeAttachment:
        """Create an attachment without a host; the volume becomes ``reserved``, or stays in use by this server.
        ``known``: existing attachments of both, to distinguish that of a lost answer from them.

        Raises volume.NotFound; volume.Refused if the volume is not available; volume.Away, also if the attachment may
        have been created.
        """
        try:
            return self._attach({"volume_uuid": volume_id, "instance_uuid": server_uuid}, volume_id, as_user)
        except errors.volume.Away:
            found = self._look_again(volume_id, server_uuid, known)
            if found is None:
                raise
            return found

    def find_reserved(self, volume_id: str, server_uuid: str, known: Collection[str] = ()) -> VolumeAttachment | None:
        """Return an attachment of both that has no host and is not ``known``; None if there is none."""
        for one in self.list_attachments(server_uuid, volume_id):
            if one.status == RESERVED and one.id not in known:
                with contextlib.suppress(errors.volume.AttachmentNotFound):
                    found = self.get_attachment(one.id)  # the list does not show whether it has a host
                    if found.connection is None:
                        return found
        return None

    def attach(self, volume_id: str, server_uuid: str, connector: Connector, mountpoint: str | None = None,
               as_user: bool = False) -> VolumeAttachment:
        """Reserve and connect in one step, for the second host during a migration; the volume is ``attaching`` until
        the attachment is completed or deleted. ``mountpoint``: such as ``/dev/vdb``.

        Raises volume.NotFound, volume.Refused; volume.Away, also if the attachment may have been created
        (:meth:`list_attachments`).
        """
        return self._attach({"volume_uuid": volume_id, "instance_uuid": server_uuid,
                             "connector": _connector(connector, mountpoint)}, volume_id, as_user)

    def connect(self, attachment_id: str, connector: Connector, mountpoint: str | None = None, as_user: bool = False
                ) -> VolumeAttachment:
        """Give a host access, and return the attachment with its connection data; the volume is then ``attaching``.
        Raises volume.AttachmentNotFound, volume.Refused; service.Conflict if another attachment of the volume is
        connected, and the volume allows only one server."""
        body = {"attachment": {"connector": _connector(connector, mountpoint)}}
        with _missing(errors.volume.AttachmentNotFound(attachment=attachment_id)):
            return self._read(values.ATTACHMENT, "PUT", _path("attachments", attachment_id), self._patient,
                              as_user=as_user, versions=ATTACHMENTS, log=False, json=body)

    def complete(self, attachment_id: str, as_user: bool = False) -> None:
        """Complete the attachment: the volume becomes ``in-use``. Raises volume.AttachmentNotFound, volume.Refused."""
        with _missing(errors.volume.AttachmentNotFound(attachment=attachment_id)):
            self._call("POST", _path("attachments", attachment_id, "/action"), as_user=as_user,
                              versions=ATTACHMENTS, json={"os-complete": {}})

    def get_attachment(self, attachment_id: str, as_user: bool = False) -> VolumeAttachment:
        """Return an attachment, with its connection data if it has a host. Raises volume.AttachmentNotFound."""
        with _missing(errors.volume.AttachmentNotFound(attachment=attachment_id)):
            return self._read(values.ATTACHMENT, "GET", _path("attachments", attachment_id), as_user=as_user,
                              versions=ATTACHMENTS, log=False)

    def list_attachments(self, server_uuid: str, volume_id: str | None = None) -> tuple[VolumeAttachment, ...]:
        """Return the attachments of a server of any project, without their connection data."""
        params = {"instance_id": server_uuid, "volume_id": volume_id, "all_tenants": "1"}
        return self._all("attachments", values.ATTACHMENT,
                         {key: value for key, value in params.items() if value}, versions=ATTACHMENTS)

    def delete_attachment(self, attachment_id: str, as_user: bool = False) -> None:
        """Delete an attachment; does nothing if it is already gone. Raises volume.InUseByService if Cinder did not
        accept nova's service token."""
        try:
            self._call("DELETE", _path("attachments", attachment_id), self._patient, as_user=as_user,
                       versions=ATTACHMENTS)
        except errors.service.ResourceNotFound:
            return
        except errors.service.Conflict as error:
            raise errors.volume.InUseByService(attachment=attachment_id, reason=error.data["reason"]) from error

    # -- internals

    def _act(self, volume_id: str, action: str, arguments: Mapping[str, object], as_user: bool,
             versions: tuple[Version, ...] = (), *others: errors.NovaError) -> None:
        with _missing(errors.volume.NotFound(volume=volume_id), *others):
            self._call("POST", _path("volumes", volume_id, "/action"), as_user=as_user, versions=versions,
                              json={action: arguments})

    def _attach(self, attachment: Mapping[str, object], volume_id: str, as_user: bool) -> VolumeAttachment:
        with _missing(errors.volume.NotFound(volume=volume_id)):
            return self._read(values.ATTACHMENT, "POST", "/attachments", as_user=as_user, versions=ATTACHMENTS,
                              log=False, json={"attachment": attachment})

    def _look_again(self, volume_id: str, server_uuid: str, known: Collection[str]) -> VolumeAttachment | None:
        """Return the attachment that an unanswered request made, if any. (Cinder may still be working on it, so one
        check is not enough.)"""
        for pause in self._doubts_s:
            concurrency.sleep(pause)
            with contextlib.suppress(errors.volume.Away):
                found = self.find_reserved(volume_id, server_uuid, known)
                if found is not None:
                    return found
        return None

    def _read(self, row: Resource[R, T], method: str, path: str, caller: CinderCaller | None = None,
              **kwargs: Unpack[VersionedCall]) -> T:
        """Return the resource in an answer."""
        body = self._json(dict[str, msgspec.Raw], method, path, caller, **kwargs)
        try:
            return row.read(decoded(body.get(row.key, NULL), row.kind))
        except ValueError:
            raise _strange(method, path) from None

    def _json(self, kind: type[R], method: str, path: str, caller: CinderCaller | None = None,
              **kwargs: Unpack[VersionedCall]) -> R:
        answer = self._call(method, path, caller, **kwargs)
        # for example from a proxy in between
        with failures.replaced(UnreadableError, lambda _: _strange(method, path)):
            return decoded(answer, kind)

    def _call(self, method: str, path: str, caller: CinderCaller | None = None, versions: tuple[Version, ...] = (),
              **kwargs: Unpack[CallOptions]) -> requests.Response:
        caller = caller or self._caller
        kwargs["headers"] = caller.headers(versions)
        return caller.call(method, path, **kwargs)

    def _all(self, path: str, row: Resource[R, T], filters: Mapping[str, object], limit: int | None = None,
             **kwargs: Unpack[VersionedCall]) -> tuple[T, ...]:
        """Return the entries of all pages of a list, up to ``limit``."""
        found: list[T] = []
        following: Sequence[tuple[str, object]] | None = list(filters.items())
        while following is not None and (limit is None or len(found) < limit):
            kwargs["params"] = following
            body = self._page(path, **kwargs)
            try:
                rows = decoded_list(body.get(row.list_key, NULL), row.kind)
                found += map(row.read, rows)
                following = _next(links_of(body.get(row.links_key, NULL))) if rows else None
            except ValueError:
                raise _strange("GET", path) from None
        return tuple(itertools.islice(found, limit))

    def _page(self, path: str, **kwargs: Unpack[VersionedCall]) -> dict[str, msgspec.Raw]:
        """Return a page of a list. A server without such a list is not Cinder; that is neither an empty list nor a
        missing resource."""
        with failures.replaced(errors.service.ResourceNotFound, lambda _: _strange("GET", path)):
            return self._json(dict[str, msgspec.Raw], "GET", f"/{path}", **kwargs)


def _path(noun: str, key: str, rest: str = "") -> str:
    """Return a path. Ids may come from users, so each id is quoted as one component of the path."""
    return f"/{noun}/{quote(key, safe='')}{rest}"


def _slice(query: VolumeQuery) -> dict[str, object]:
    given = {"limit": query.limit, "offset": query.offset or None}
    return {key: value for key, value in given.items() if value is not None}


def _connector(connector: Connector, mountpoint: str | None) -> dict[str, object]:
    """Return the connector with the server's device name, for which the API has no other place."""
    return {**connector, "mountpoint": mountpoint} if mountpoint else dict(connector)


@contextlib.contextmanager
def _missing(*candidates: errors.NovaError) -> Iterator[None]:
    """Translate ResourceNotFound to the error in ``candidates`` whose resource Cinder names, else to the first."""
    try:
        yield
    except errors.service.ResourceNotFound as absent:
        said = str(absent.data.get("reason"))
        raise next((one for one in candidates if any(key and str(key) in said for key in one.data.values())),
                   candidates[0]) from absent


def _strange(method: str, path: str) -> errors.NovaError:
    return errors.volume.Away(reason=f"the server that answers {method} {path} is not Cinder")


def _next(links: Sequence[PageLink]) -> list[tuple[str, str]] | None:
    """Return the parameters of the next page. (The link's host is the service's own name for itself, at which nova
    cannot always reach it.) An offset applies before the marker, so it is not repeated."""
    for link in links:
        if link.rel == "next":
            return [one for one in parse_qsl(urlsplit(link.href).query) if one[0] != "offset"]
    return None

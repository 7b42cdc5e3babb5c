"""Answers of the small volume service: Cinder's rules for each call."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tests.fakes.cinder import FakeCinder

Answer = tuple[int, Any]

SECRET = "chap-secret-of-the-back-end"  # in every connection
#: What may be deleted.
DELETABLE = ("available", "error", "error_restoring", "error_extending", "error_managing")


class Refusal(Exception):
    """An error answer in Cinder's form."""

    KINDS = {400: "badRequest", 403: "forbidden", 404: "itemNotFound", 406: "computeFault", 409: "conflictingRequest",
             413: "overLimit"}

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = {self.KINDS[status]: {"code": status, "message": message}}


class Asked(NamedTuple):
    """A request. ``words``: its path without version and project; ``project``: the project of its token, None for an
    administrator's; ``service``: the request has a service token."""

    method: str
    words: tuple[str, ...]
    query: Mapping[str, str]
    body: Any
    version: tuple[int, int]
    project: str | None
    home: str
    service: bool

    def since(self, minor: int) -> None:
        """Refuse a request with an older version, with Cinder's 404."""
        if self.version < (3, minor):
            raise Refusal(404, f"API version 3.{self.version[1]} is not supported on this method.")


class Rules:
    """The rules of all calls; ``answer`` is the entry point."""

    def __init__(self, fake: FakeCinder) -> None:
        self.fake, self.store = fake, fake.store

    def answer(self, asked: Asked) -> Answer:
        """Return (status, body) for a request. Raises Refusal."""
        self.fake.settle()
        if asked.version > self.fake.newest:
            raise Refusal(406, "Version is not supported by the API.")
        noun, *rest = asked.words
        handle: Callable[..., Answer] | None = getattr(self, f"_{asked.method.lower()}_{noun}", None)
        if handle is None:
            raise Refusal(404, "The resource could not be found.")
        return handle(asked, *rest)

    # -- volumes

    def _get_volumes(self, asked: Asked, key: str = "detail", part: str = "") -> Answer:
        if key == "detail":
            return 200, self._page(asked, "volumes", self._volume_shown)
        volume = self._volume(asked, key)
        if part == "encryption":
            return 200, volume.get("encryption") or {}
        return 200, {"volume": self._volume_shown(asked, volume)}

    def _post_volumes(self, asked: Asked, key: str = "", part: str = "") -> Answer:
        if part == "action":
            (action, arguments), = asked.body.items()
            return self._volume_actions()[action](asked, self._volume(asked, key), arguments)
        if part == "metadata":
            return self._write_metadata(asked, self._volume(asked, key))
        wanted = asked.body["volume"]
        snapshot = self.store.snapshots.get(wanted.get("snapshot_id"))
        if wanted.get("snapshot_id") and snapshot is None:
            raise Refusal(404, f"Snapshot {wanted['snapshot_id']} could not be found.")
        kind = wanted.get("volume_type") or "fast"
        name = self.store.types.get(kind, kind)
        if name not in self.store.types.values():
            raise Refusal(404, f"Volume type with name {kind} could not be found.")
        if snapshot and wanted["size"] < snapshot["size"]:
            raise Refusal(400, f"Invalid input received: Volume size '{wanted['size']}'GB cannot be smaller than the "
                               f"snapshot size {snapshot['size']}GB. They must be >= original snapshot size.")
        self.fake.check_quota("volumes", asked.home)
        volume_id = self.fake.add_volume(
            wanted["size"], project=asked.home, name=wanted.get("name") or "", volume_type=name,
            description=wanted.get("description"), snapshot_id=wanted.get("snapshot_id"),
            availability_zone=wanted.get("availability_zone") or "nova", metadata=wanted.get("metadata") or {},
            bootable=str(bool(wanted.get("imageRef"))).lower())
        if wanted.get("imageRef"):
            self.store.volumes[volume_id]["volume_image_metadata"] = {"image_id": wanted["imageRef"]}
        self.fake.begin(self.store.volumes[volume_id], "creating", "available")
        return 202, {"volume": self._volume_shown(asked, self.store.volumes[volume_id])}

    @staticmethod
    def _write_metadata(asked: Asked, thing: dict[str, Any]) -> Answer:
        wanted = asked.body["metadata"]
        if any(not 0 < len(key) <= 255 or len(value) > 255 for key, value in wanted.items()):
            raise Refusal(400, "Invalid input for field/attribute metadata: too long.")
        thing["metadata"] = {**thing["metadata"], **wanted}
        return 200, {"metadata": thing["metadata"]}

    @staticmethod
    def _drop_metadata(thing: dict[str, Any], name: str) -> Answer:
        if name not in thing["metadata"]:
            raise Refusal(404, f"Metadata item {name} could not be found.")
        thing["metadata"] = {key: value for key, value in thing["metadata"].items() if key != name}
        return 200, None

    def _delete_volumes(self, asked: Asked, key: str, part: str = "", name: str = "") -> Answer:
        volume = self._volume(asked, key)
        if part == "metadata":
            return self._drop_metadata(volume, name)
        if volume["status"] not in DELETABLE or self.fake.attachments_of(key) or any(
                one["volume_id"] == key for one in self.store.snapshots.values()):
            raise Refusal(400, "Invalid volume: Volume status must be available or error or error_restoring or "
                               "error_extending or error_managing and must not be migrating, attached, belong to a "
                               "group, have snapshots, awaiting a transfer, or be disassociated from snapshots after "
                               "volume transfer.")
        del self.store.volumes[key]
        return 202, None

    def _volume_actions(self) -> dict[str, Callable[[Asked, dict[str, Any], Any], Answer]]:
        return {"os-begin_detaching": self._begin_detaching, "os-roll_detaching": self._roll_detaching,
                "os-migrate_volume_completion": self._complete_migration, "os-reimage": self._reimage}

    def _begin_detaching(self, asked: Asked, volume: dict[str, Any], arguments: Any) -> Answer:
        if volume["status"] != "in-use":
            raise Refusal(400, "Invalid volume: Unable to detach volume. Volume status must be 'in-use' and "
                               "attach_status must be 'attached' to detach.")
        volume["status"] = "detaching"
        return 202, None

    def _roll_detaching(self, asked: Asked, volume: dict[str, Any], arguments: Any) -> Answer:
        if volume["status"] == "detaching":
            volume["status"] = "in-use"
        return 202, None

    def _complete_migration(self, asked: Asked, volume: dict[str, Any], arguments: Any) -> Answer:
        """Complete a migration; without one, a server has just swapped the volume for another."""
        new = self._volume(asked, arguments["new_volume"])
        if volume["migration_status"] is None:
            for one in self.fake.attachments_of(volume["id"]):
                del self.store.attachments[one["id"]]
            volume["status"] = "available"
            return 200, {"save_volume_id": new["id"]}
        volume["migration_status"] = None
        return 200, {"save_volume_id": new["id"] if arguments.get("error") else volume["id"]}

    def _reimage(self, asked: Asked, volume: dict[str, Any], arguments: Any) -> Answer:
        asked.since(68)
        if arguments["image_id"] not in self.fake.images:
            raise Refusal(404, f"Image {arguments['image_id']} could not be found.")
        allowed = ("available", "error", *(("reserved",) if arguments["reimage_reserved"] else ()))
        if volume["status"] not in allowed:
            raise Refusal(400, f"Invalid volume: Volume {volume['id']} status must be {' or '.join(allowed)}, but "
                               f"current status is {volume['status']}.")
        self.fake.begin(volume, "downloading", volume["status"])
        return 202, None

    # -- snapshots

    def _get_snapshots(self, asked: Asked, key: str = "detail") -> Answer:
        if key == "detail":
            return 200, self._page(asked, "snapshots", self._snapshot_shown)
        return 200, {"snapshot": self._snapshot_shown(asked, self._snapshot(asked, key))}

    def _post_snapshots(self, asked: Asked, key: str = "", part: str = "") -> Answer:
        if part == "action":
            return self._set_snapshot_status(self._snapshot(asked, key), asked.body["os-update_snapshot_status"])
        if part == "metadata":
            return self._write_metadata(asked, self._snapshot(asked, key))
        wanted = asked.body["snapshot"]
        volume = self._volume(asked, wanted["volume_id"])
        if volume["status"] not in ("available", *(("in-use",) if wanted.get("force") else ())):
            raise Refusal(400, f"Invalid volume: Volume {volume['id']} status must be available, but current status "
                               f"is: {volume['status']}.")
        self.fake.check_quota("snapshots", asked.home)
        snapshot_id = self.fake.add_snapshot(volume["id"], project=asked.home, name=wanted.get("name") or "",
                                             description=wanted.get("description"), progress="0%",
                                             metadata=wanted.get("metadata") or {})
        self.fake.begin(self.store.snapshots[snapshot_id], "creating", "available")
        return 202, {"snapshot": self._snapshot_shown(asked, self.store.snapshots[snapshot_id])}

    @staticmethod
    def _set_snapshot_status(snapshot: dict[str, Any], wanted: Mapping[str, str]) -> Answer:
        allowed = {"creating": ("creating", "available", "error"), "deleting": ("deleting", "error_deleting")}
        if wanted["status"] not in allowed.get(snapshot["status"], ()):
            raise Refusal(400, f"Provided snapshot status {wanted['status']} not allowed for snapshot with status "
                               f"{snapshot['status']}.")
        snapshot.update(status=wanted["status"], progress=wanted.get("progress", snapshot["progress"]))
        return 202, None

    def _delete_snapshots(self, asked: Asked, key: str, part: str = "", name: str = "") -> Answer:
        if part == "metadata":
            return self._drop_metadata(self._snapshot(asked, key), name)
        if self._snapshot(asked, key)["status"] not in ("available", "error"):
            raise Refusal(400, "Invalid snapshot: Snapshot status must be one of available or error.")
        del self.store.snapshots[key]
        return 202, None

    # -- attachments

    def _get_attachments(self, asked: Asked, key: str = "") -> Answer:
        asked.since(27)
        if key:
            return 200, {"attachment": self._attachment_shown(self._attachment(asked, key))}
        mine = self.fake.attachments_of(asked.query.get("volume_id", ""), asked.query.get("instance_id", ""))
        everybodys = asked.project is None and asked.query.get("all_tenants") == "1"
        return 200, {"attachments": [
            {"id": one["id"], "status": one["status"], "instance": one["instance"], "volume_id": one["volume_id"]}
            for one in mine if everybodys or self.store.volumes[one["volume_id"]]["project"] == asked.home]}

    def _post_attachments(self, asked: Asked, key: str = "", part: str = "") -> Answer:
        if part == "action":
            asked.since(44)
            return self._complete(self._attachment(asked, key))
        asked.since(27)
        wanted = asked.body["attachment"]
        volume = self._volume(asked, wanted["volume_uuid"])
        self._reserve(volume, wanted["instance_uuid"])
        attachment = {"id": str(uuid.uuid4()), "volume_id": volume["id"], "instance": wanted["instance_uuid"],
                      "status": "reserved", "connection": {}, "connector": {}}
        self.store.attachments[attachment["id"]] = attachment
        if wanted.get("connector"):
            self._connect(attachment, volume, wanted["connector"])
        return 200, {"attachment": self._attachment_shown(attachment)}

    def _reserve(self, volume: dict[str, Any], server: str) -> None:
        """Reserve a volume; in use, its own (moving) server may reserve it, and others if it is multiattach."""
        own = any(one["instance"] == server for one in self.fake.attachments_of(volume["id"]))
        if volume["status"] in ("available", "downloading") or (volume["status"] == "in-use" and volume["multiattach"]):
            volume["status"] = "reserved"
        elif not (own and volume["status"] in ("in-use", "reserved", "attaching")):
            raise Refusal(400, f"Invalid volume: Volume {volume['id']} status must be available or downloading to "
                               f"reserve, but the current status is {volume['status']}.")

    def _connect(self, attachment: dict[str, Any], volume: dict[str, Any], connector: Mapping[str, Any]) -> None:
        attachment.update(status="attaching", connector=dict(connector), connection={
            "driver_volume_type": "iscsi", "attachment_id": attachment["id"], "volume_id": volume["id"],
            "access_mode": "rw", "encrypted": volume["encrypted"], "target_iqn": f"iqn.2010-10.test:{volume['id']}",
            "target_portal": "127.0.0.1:3260", "target_lun": 1, "auth_method": "CHAP", "auth_username": "user",
            "auth_password": SECRET})
        volume["status"] = "attaching"

    def _put_attachments(self, asked: Asked, key: str) -> Answer:
        asked.since(27)
        attachment = self._attachment(asked, key)
        volume = self.store.volumes[attachment["volume_id"]]
        others = [one for one in self.fake.attachments_of(volume["id"]) if one["id"] != key and one["connection"]]
        if others and not volume["multiattach"]:
            raise Refusal(409, f"Resource conflict: duplicate connectors detected on volume {volume['id']}.")
        self._connect(attachment, volume, asked.body["attachment"]["connector"])
        return 200, {"attachment": {**self._attachment_shown(attachment), "status": "reserved"}}  # as Cinder says it

    def _complete(self, attachment: dict[str, Any]) -> Answer:
        attachment["status"] = "attached"
        self.store.volumes[attachment["volume_id"]]["status"] = "in-use"
        return 204, None

    def _delete_attachments(self, asked: Asked, key: str) -> Answer:
        asked.since(27)
        attachment = self._attachment(asked, key)
        if attachment["connection"] and not asked.service and self.fake.uses(attachment["instance"], key):
            raise Refusal(409, f"Detach volume from instance {attachment['instance']} using the Compute API")
        del self.store.attachments[key]
        volume = self.store.volumes[attachment["volume_id"]]
        left = {one["status"] for one in self.fake.attachments_of(volume["id"])}
        volume["status"] = ("in-use" if "attached" in left else "attaching" if "attaching" in left
                            else "reserved" if left else "available")
        return 200, {"attachments": [self._attachment_shown(one) for one in self.fake.attachments_of(volume["id"])]}

    # -- types and limits

    def _get_types(self, asked: Asked) -> Answer:
        keys = list(self.store.types)
        begin = keys.index(asked.query["marker"]) + 1 if "marker" in asked.query else 0
        page = keys[begin:begin + self.fake.page]
        answer: dict[str, Any] = {"volume_types": [{"id": key, "name": self.store.types[key]} for key in page]}
        if len(page) == self.fake.page:
            answer["volume_type_links"] = [{"rel": "next", "href": f"http://elsewhere/v3/types?marker={page[-1]}"}]
        return 200, answer

    def _get_limits(self, asked: Asked) -> Answer:
        used = len(list(self.fake.of_project(self.store.snapshots, asked.home)))
        return 200, {"limits": {"rate": [], "absolute": {
            "totalSnapshotsUsed": used, "maxTotalSnapshots": self.fake.quotas.get("snapshots", -1)}}}

    # -- inside

    def _volume(self, asked: Asked, key: str) -> dict[str, Any]:
        found = self.store.volumes.get(key)
        if found is None or asked.project not in (None, found["project"]):
            raise Refusal(404, f"Volume {key} could not be found.")
        return found

    def _snapshot(self, asked: Asked, key: str) -> dict[str, Any]:
        found = self.store.snapshots.get(key)
        if found is None or asked.project not in (None, found["project"]):
            raise Refusal(404, f"Snapshot {key} could not be found.")
        return found

    def _attachment(self, asked: Asked, key: str) -> dict[str, Any]:
        found = self.store.attachments.get(key)
        if found is None:
            raise Refusal(404, f"Volume attachment could not be found with filter: attachment_id = {key}.")
        self._volume(asked, found["volume_id"])
        return found

    def _page(self, asked: Asked, noun: str, shown: Callable[[Asked, dict[str, Any]], dict[str, Any]]
              ) -> dict[str, Any]:
        found = list(reversed(getattr(self.store, noun).values())) if (
            asked.project is None and asked.query.get("all_tenants") == "1"
        ) else list(self.fake.of_project(getattr(self.store, noun), asked.home))
        if not self.fake.filters_nothing:
            found = [one for one in found if asked.query.get("name", one["name"]) == one["name"]]
        begin = int(asked.query.get("offset", 0))
        if "marker" in asked.query:
            begin += [one["id"] for one in found].index(asked.query["marker"]) + 1
        limit = min(int(asked.query.get("limit", self.fake.page)), self.fake.page)
        page = found[begin:begin + limit]
        answer: dict[str, Any] = {noun: [shown(asked, one) for one in page]}
        if page and len(page) == limit:
            query = {**asked.query, "marker": page[-1]["id"], "limit": str(limit)}
            rest = "&".join(f"{key}={value}" for key, value in query.items())
            answer[f"{noun}_links"] = [{"rel": "next", "href": f"http://elsewhere/v3/{noun}/detail?{rest}"}]
        return answer

    def _volume_shown(self, asked: Asked, volume: dict[str, Any]) -> dict[str, Any]:
        hidden = {"project", "encryption", *(("shared_targets", "service_uuid") if asked.version < (3, 48) else ())}
        shown = {key: value for key, value in volume.items() if key not in hidden}
        if "shared_targets" in shown and shown["shared_targets"] is None and asked.version < (3, 69):
            shown["shared_targets"] = True
        uses = [one for one in self.fake.attachments_of(volume["id"]) if one["status"] == "attached"]
        return {**shown, "attachments": [
            {"id": volume["id"], "volume_id": volume["id"], "server_id": one["instance"], "attachment_id": one["id"],
             "host_name": one["connector"].get("host"), "device": one["connector"].get("mountpoint")} for one in uses]}

    @staticmethod
    def _snapshot_shown(asked: Asked, snapshot: dict[str, Any]) -> dict[str, Any]:
        shown = {key: value for key, value in snapshot.items() if key not in ("project", "progress")}
        return {**shown, "os-extended-snapshot-attributes:progress": snapshot["progress"],
                "os-extended-snapshot-attributes:project_id": snapshot["project"]}

    @staticmethod
    def _attachment_shown(attachment: dict[str, Any]) -> dict[str, Any]:
        return {"id": attachment["id"], "status": attachment["status"], "instance": attachment["instance"],
                "volume_id": attachment["volume_id"], "attached_at": "", "detached_at": "", "attach_mode": "rw",
                "connection_info": dict(attachment["connection"])}

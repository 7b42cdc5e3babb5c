"""Snapshots of file-based volumes, which the volume service asks the server's host to create and to merge."""

from __future__ import annotations

import msgspec

from nova import decoding, errors, failures
from nova.api.request import Request
from nova.api.view import answers
from nova.model.volumes import NewAssistedSnapshot, OldAssistedSnapshot

QCOW2 = "qcow2"


class _DeleteInfo(msgspec.Struct):
    """The JSON of ``delete_info``; other members are ignored."""

    volume_id: str
    type: str = QCOW2
    file_to_merge: str | None = None
    merge_target_file: str | None = None


@answers({"snapshot": {"id": ("string", "null"), "volumeId": "string"}})
def create(req: Request) -> dict[str, object]:
    """Start a snapshot: the server's host reports the result to the volume service. Raises Invalid (400): not exactly
    one server has the volume, or the server is busy or on no host."""
    asked, info = req.body["snapshot"], req.body["snapshot"]["create_info"]
    _check_file("create_info.new_file", info["new_file"])
    wanted = NewAssistedSnapshot(volume_id=asked["volume_id"], snapshot_id=info["snapshot_id"],
                                 new_file=info["new_file"], id=info.get("id"))
    req.conductor.create_assisted_snapshot(wanted)
    return {"snapshot": {"id": wanted.id, "volumeId": wanted.volume_id}}


def delete(req: Request, snapshot_id: str) -> None:
    """Start to merge a snapshot, by ``delete_info`` of the query (JSON). Raises NotFound (404); volume.BadDeleteInfo,
    Invalid (400)."""
    info = _delete_info(req.query.one("delete_info"))
    _check_file("file_to_merge", info.file_to_merge)
    _check_file("merge_target_file", info.merge_target_file)
    req.conductor.delete_assisted_snapshot(OldAssistedSnapshot(
        snapshot_id=snapshot_id, volume_id=info.volume_id, file_to_merge=info.file_to_merge,
        merge_target_file=info.merge_target_file))


def _delete_info(text: str | None) -> _DeleteInfo:
    if text is None:
        raise errors.volume.BadDeleteInfo(reason="it is missing")
    with failures.replaced((msgspec.DecodeError, UnicodeEncodeError),
            lambda error: errors.volume.BadDeleteInfo(reason=str(error))):
        info = decoding.from_json(text, _DeleteInfo)
    if info.type != QCOW2:
        raise errors.volume.BadDeleteInfo(reason=f"type {info.type} is not {QCOW2}")
    return info


def _check_file(field: str, name: str | None) -> None:
    """Check that a file name stays in the directory of the volume's own file. Raises api.BadInput."""
    if name is not None and (name in ("", ".", "..") or "/" in name or "\0" in name):
        raise errors.api.BadInput(field=field, value=name, reason="It must be a file's name, without its directory.")

"""Execution of one call, and the table of calls.

A row is a function: its first parameter is the :class:`HelperCall`, and the others are the call's arguments, by name,
with types that limit their values. :func:`dispatch` turns a request into an answer, both as bytes, independent of the
transport.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from nova import decoding, errors
from nova.privileged import client, wire
from nova.privileged.helper.arguments import refused
from nova.privileged.helper.folders import HelperFolders
from nova.privileged.helper.settings import HelperSettings
from nova.privileged.opened_files import OpenedFile
from nova.privileged.runner import PrivateRunner, SystemRunner

LOG = logging.getLogger(__name__)

DEVICE_OF_GROUP = re.compile(r"/dev/([A-Za-z0-9+_.][A-Za-z0-9+_.-]*)/([A-Za-z0-9_][A-Za-z0-9_.+-]{0,126})")
IMAGE_IN_CEPH = re.compile(r"rbd:([A-Za-z0-9_.-]+)/([A-Za-z0-9_.@-]+)((?::(?:id|conf)=[A-Za-z0-9_./\\-]+){0,2})")
CEPH_FOLDER = "/etc/ceph/"


class HelperCall:
    """The context of a call: the host's settings, and the files that it has opened."""

    def __init__(self, name: str, settings: HelperSettings) -> None:
        self.name, self.settings = name, settings
        self.folders = HelperFolders(settings.roots)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.folders.close()

    def file(self, path: str) -> OpenedFile:
        """Open a file of guests, images or volumes. Raises host.HelperRefused, OSError."""
        return self.folders.file(path)

    def made(self, path: str) -> OpenedFile:
        """Open a file, and create it if it does not exist. Raises errors as ``file``."""
        return self.folders.made(path)

    def disk(self, path: str, new: bool = False) -> str:
        """Return a disk by any form of its name: a file, a volume of nova's group, or an image in one of nova's
        pools."""
        if path.startswith("rbd:"):
            return self._ceph_image(path)
        if path.startswith("/dev/"):
            return self._volume(path)
        return self.made(path) if new else self.file(path)

    def runner(self, timeout_s: float) -> SystemRunner:
        """Return a runner for system tools."""
        return SystemRunner(timeout_s)

    def tools(self, timeout_s: float) -> PrivateRunner:
        """Return a runner for sandboxed tools, which inherit the files that this call has opened so far."""
        return PrivateRunner(timeout_s, self.folders.descriptors())

    def own(self, name: str) -> Path:
        """Return a directory of the helper, to which no other user writes."""
        self.settings.own_folder.mkdir(mode=0o755, exist_ok=True)
        folder = self.settings.own_folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def refused(self, reason: str) -> errors.HostRefused:
        """Return host.HelperRefused for this call."""
        return refused(self.name, reason)

    # --- internals

    def _volume(self, path: str) -> str:
        found = DEVICE_OF_GROUP.fullmatch(path)
        if found is None or not self.settings.volume_group or found[1] != self.settings.volume_group:
            raise self.refused(f"{path[:200]} is not a volume of [libvirt]images_volume_group")
        return path

    def _ceph_image(self, path: str) -> str:
        found = IMAGE_IN_CEPH.fullmatch(path)
        if found is None or found[1] not in self.settings.ceph_pools:
            raise self.refused(f"{path[:200]} is not an image of [libvirt]images_rbd_pool")
        conf = re.search(r":conf=([^:]+)", found[3])
        if conf is not None and os.path.normpath(conf[1].replace("\\", "")) != conf[1].replace("\\", ""):
            raise self.refused("the path of Ceph's configuration is not normalized")
        if conf is not None and not conf[1].startswith(CEPH_FOLDER):
            raise self.refused(f"Ceph's configuration is not in {CEPH_FOLDER}")
        return path


#: A handler of a call: its result must be serializable.
Handler = TypeVar("Handler", bound=Callable[..., object])
TABLE: dict[str, Callable[..., object]] = {}


def call(name: str) -> Callable[[Handler], Handler]:
    """Register a function in the table."""

    def add(handler: Handler) -> Handler:
        assert name not in TABLE
        TABLE[name] = handler
        return handler

    return add


@functools.cache
def arguments_of(name: str) -> type[msgspec.Struct]:
    """Return the type of a call's arguments: strict, and without unknown fields."""
    handler = TABLE[name]
    hints = typing.get_type_hints(handler, include_extras=True)
    _call, *parameters = inspect.signature(handler).parameters.values()
    fields = [(one.name, hints[one.name]) if one.default is one.empty else (one.name, hints[one.name], one.default)
              for one in parameters]
    title = "".join(map(str.capitalize, re.split(r"[._]", name)))
    return msgspec.defstruct(f"{title}Arguments", fields, frozen=True, kw_only=True, forbid_unknown_fields=True)


def dispatch(request: bytes, settings: HelperSettings) -> bytes:
    """Return the answer to a request. Never raises, and exposes no internals of the helper."""
    name = "that"
    try:
        asked = decoding.from_msgpack(request, wire.HelperRequest)
        name = asked.call[:100]
        reply = wire.HelperReply(msgspec.Raw(_result(asked, settings)))
    except errors.NovaError as error:
        reply = wire.HelperReply(error=wire.error_of(error))
    except msgspec.MsgspecError as error:
        LOG.warning("refused %s: %s", name, error)
        reply = wire.HelperReply(error=wire.error_of(refused(name, str(error)[:300])))
    except OSError as error:
        reply = wire.HelperReply(os_error=(error.errno or 0, error.strerror or str(error)))
    except Exception:  # a request must not end the helper, and learns nothing of its bugs
        LOG.exception("unexpected error in %s", name)
        reply = wire.HelperReply(error=wire.error_of(errors.Bug()))
    return msgspec.msgpack.encode(reply)


def _result(asked: wire.HelperRequest, settings: HelperSettings) -> bytes:
    handler = TABLE.get(asked.call)
    if handler is None:
        raise refused(asked.call[:100], "there is no such call")
    given = decoding.from_msgpack(asked.arguments, arguments_of(asked.call))
    LOG.debug("%s", asked.call)
    with client.inside(), HelperCall(asked.call, settings) as under_way:
        result = handler(under_way, **{name: getattr(given, name) for name in given.__struct_fields__})
        return msgspec.msgpack.encode(result, enc_hook=str)


__all__ = ["HelperCall", "TABLE", "arguments_of", "call", "dispatch"]

"""nova-objectstore: S3 on its host's files, for users with EC2 credentials in Keystone."""

from __future__ import annotations

import logging
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nova import configuration, errors, failures
from nova.cmd import common
from nova.conf._options import Options
from nova.monitoring.health import HealthChecks
from nova.service import PeriodicTask

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from nova.legacy.objectstore.store import ObjectStore
    from nova.legacy.signatures.signers import Signers
    from nova.legacy.signatures.taken import TakenSignatures

LOG = logging.getLogger(__name__)

BINARY = "nova-objectstore"
UPKEEP_S = 3600.0  # interval of the clean-up of abandoned uploads and of files of killed processes


def bind(options: Options) -> socket.socket:
    """Return the listening socket, created before workers fork. Raises service.CannotStart with address and options."""
    from nova import http_server
    from nova.cmd import api

    address, port = options.s3_listen, options.s3_listen_port
    if options.s3_believe_all or options.api.auth_strategy == "noauth2":
        believing = "s3_believe_all" if options.s3_believe_all else "[api]auth_strategy = noauth2"
        api.check_local(options, believing, "s3_listen", address)
    with failures.replaced(OSError, lambda error: errors.service.CannotStart(
            reason=f"{address}:{port} (s3_listen, s3_listen_port) cannot be bound: {error.strerror}")):
        return http_server.bind(address, port)


def store(options: Options) -> ObjectStore:
    """Return the ObjectStore. Raises service.CannotStart if its directory cannot be used."""
    from nova.legacy.objectstore.store import ObjectStore, StoreLimits

    with failures.replaced(OSError, lambda error: errors.service.CannotStart(
            reason=f"buckets_path = {options.buckets_path} cannot be used: {error}")):
        made = ObjectStore(Path(options.buckets_path), StoreLimits(
            options.s3_project_bytes, options.s3_project_objects, options.s3_longest_object,
            least_free=options.s3_reserved_disk_mb * 2 ** 20))
        made.check()
        return made


def signers(options: Options) -> Signers | None:
    """Return the verifier of signatures; None if signatures are not checked. Raises service.CannotStart."""
    from nova.legacy.signatures import signers as found

    if options.s3_believe_all:
        return None
    return found.from_conf(options)


def application(options: Options, kept: ObjectStore, asked: Signers | None, taken: TakenSignatures
                ) -> WSGIApplication:
    """Return the S3 application over the store ``kept``, for users that ``asked`` identifies. ``taken``: the
    TakenSignatures of all workers."""
    from nova.legacy.objectstore import identity
    from nova.legacy.objectstore.app import S3Application
    from nova.web.access_log import AccessLog
    from nova.web.auth import NOAUTH
    from nova.web.request_id import RequestId

    believes = options.api.auth_strategy == NOAUTH  # signed requests are not checked, nor are signatures of chunks
    identify = identity.everybody if asked is None else \
        identity.SignedIdentity(asked, (lambda *_: True) if believes else None)
    return RequestId(AccessLog(S3Application(kept, identify, taken), "s3", "nova.objectstore.access"))


class ObjectStoreDaemon:
    """A worker process of nova-objectstore, serving the socket that its parent bound. ``upkeep``: whether this worker
    does the upkeep and creates images from bundles, as one of them does. ``taken``: signatures taken by all workers;
    None: a single worker."""

    def __init__(self, options: Options, sock: socket.socket, upkeep: bool = True, taken: TakenSignatures | None = None
                 ) -> None:
        from nova import http_server
        from nova.client_bounds import bounds
        from nova.cmd import api
        from nova.cmd.bundles import Bundles
        from nova.legacy.objectstore.uploads import MultipartUploads
        from nova.legacy.signatures.taken import TakenSignatures
        from nova.rpc.buses import has_control_bus

        self.options, self.store, self.signers = options, store(options), signers(options)
        self.uploads = MultipartUploads(self.store)
        self.server = http_server.Server(
            sock, application(options, self.store, self.signers, taken or TakenSignatures()),
            bounds("objectstore", options), api.tls(options.wsgi))
        self.upkeep = [PeriodicTask(UPKEEP_S, self.keep, "upkeep of the object store", at_once=True)] if upkeep else []
        self.bundles = Bundles(options, BINARY, self.store) if upkeep and has_control_bus(options) else None
        if upkeep and self.bundles is None:
            LOG.info("[DEFAULT]transport_url is not set: images cannot be created from bundles")

    def start(self) -> None:
        """Start serving."""
        self.server.start()
        for one in self.upkeep:
            one.start()
        if self.bundles is not None:
            self.bundles.start()

    def keep(self) -> None:
        """Remove abandoned uploads and files, and recompute projects' usage, which others may have changed."""
        self.store.usage.forget()
        swept, expired = self.store.sweep(), self.uploads.expire(self.options.s3_upload_expiry)
        if swept or expired:
            LOG.info("Removed unfinished files of killed processes: %d; abandoned multipart uploads: %d",
                     swept, expired)

    def health_checks(self) -> HealthChecks:
        """Return checks that files can be created, that Keystone answers, if used, and of the bundle service."""
        from nova.legacy.signatures.signers import KeystoneSigners

        asked = {"keystone": self.signers.check} if isinstance(self.signers, KeystoneSigners) else {}
        checks = {"store": self.store.check, **asked}
        return HealthChecks(checks) if self.bundles is None else self.bundles.health_checks(checks)

    def stop(self, seconds: float) -> None:
        """Stop accepting requests; running requests have ``seconds`` to end. Clients repeat interrupted uploads."""
        for one in self.upkeep:
            one.stop()
        if self.bundles is not None:
            self.bundles.stop(seconds)
        self.server.stop(seconds)


def main() -> int:
    """Run nova-objectstore and return its exit code. Uses native threads, because it reads and writes files. Workers
    share the directory's lock."""
    from nova import service

    options = configuration.read(BINARY, configuration.beside(sys.argv[1:], BINARY))
    common.begin(options, BINARY, "threads")
    with common.preparing(options, BINARY):
        store(options)
        signers(options)
        sock = bind(options)
    common.preload(("nova.clients.signed_tokens", "nova.legacy.objectstore.app",
                    "nova.legacy.objectstore.bundles.service", "nova.rpc.buses", "nova.http_server"))
    from nova.legacy.signatures.taken import TakenSignatures

    taken = TakenSignatures()  # before workers fork
    return service.run(options, BINARY, lambda index: ObjectStoreDaemon(options, sock, index == 0, taken),
                       options.s3_workers or common.cpus())


if __name__ == "__main__":
    raise SystemExit(main())

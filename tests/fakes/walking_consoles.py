"""Consoles on a walk: console URLs that are issued at any time, and the invariants of accepted ones."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import sqlalchemy as sa

from nova import context, errors
from nova.db.models import cell as tables
from nova.model.guest.consoles import ConsoleRequest, ConsoleType, TokenCheck, token_hash
from nova.model.server.states import ENDS_CONSOLES
from tests.fakes.living_cloud import Killed, LivingCloud
from tests.fakes.small_cloud import DEMO

TYPE = ConsoleType.SERIAL
MOST, LOOKED_AT = 30, 3
ENDED = "console.ended"


class WalkingConsoles:
    def __init__(self, cloud: LivingCloud, rng: random.Random) -> None:
        self.cloud, self.rng = cloud, rng
        self.given: dict[str, str] = {}  # token -> server
        self.dead: set[str] = set()
        self.opened = self.accepted = self.refused = 0

    def open(self, uuid: str) -> None:
        """Open a console of a server in any state; the request may be refused, or its answer be lost."""
        with contextlib.suppress(errors.NovaError, Killed), context.entered(DEMO):
            url = self.cloud.consoles.open_console(ConsoleRequest(server_uuid=uuid, type=TYPE)).url
            self.given[parse_qs(urlsplit(url).query)["token"][0]] = uuid
            self.opened += 1
        for token in list(self.given)[:-MOST]:
            del self.given[token]

    def wrong(self) -> list[str]:
        """Return the violations of some of the issued consoles, when the cloud is idle."""
        some = self.rng.sample(sorted(self.given), min(LOOKED_AT, len(self.given)))
        return [problem for token in some for problem in self._wrong(token, self.given[token])]

    def _wrong(self, token: str, uuid: str) -> Iterator[str]:
        name = f"the console {token_hash(token)[:8]} of {uuid}"
        try:
            found = self.cloud.consoles.check_token(TokenCheck(token_hash=token_hash(token), redeem=True))
        except errors.NovaError as error:
            self.refused += 1
            if error.kind != "not_found":
                yield f"{name} was refused with {error.kind}: {error.message}"
            if error.code == ENDED:
                self.dead.add(token)
            return
        self.accepted += 1
        if token in self.dead:
            yield f"{name} was dead, and is accepted"
        if found.server_uuid != uuid:
            yield f"{name} opens {found.server_uuid}"
        yield from self._misplaced(name, token, found)

    def _misplaced(self, name: str, token: str, found: Any) -> Iterator[str]:
        row = self.cloud.server(found.server_uuid)
        if row.deleted or row.host is None:
            yield f"{name} is accepted, and its server is nowhere"
            return
        place = self.cloud.computes[row.host].driver.remote_consoles.console_of(row.uuid, TYPE)
        if place.port != found.address.port:
            yield f"{name} opens port {found.address.port}, its guest on {row.host} is at {place.port}"
        [kept] = self.cloud.rows("cell", sa.select(tables.console_tokens).where(
            tables.console_tokens.c.token_hash == token_hash(token)))
        if kept.host != row.host:
            yield f"{name} was given out for {kept.host}, its server is on {row.host}"
        ended = [entry.action for entry in self.cloud.journal(row.uuid)
                 if entry.action in ENDS_CONSOLES and entry.epoch > kept.epoch and not _retaken(entry, kept)]
        if ended:
            yield f"{name} is accepted after {ended}"


def _retaken(entry: Any, kept: Any) -> bool:
    """Return whether the operation began before the console was requested, and another runner took it over later."""
    return bool(entry.started_at <= kept.created_at)

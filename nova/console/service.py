"""nova-consoleauth: issues the tokens of consoles and checks them. It keeps nothing: the conductor does, by hash."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from nova import errors
from nova.console import tokens, urls
from nova.model.base import Json
from nova.model.guest.consoles import (
    Console,
    ConsoleAddress,
    ConsoleConnection,
    ConsoleGrant,
    ConsoleRequest,
    ConsoleType,
    TokenCheck,
    token_hash,
)

LOG = logging.getLogger(__name__)


class ConsoleAuthService:
    """ConsoleAuthRPC. ``settings``: the group ``[consoleauth]``. ``bases``: where users' programs find the proxies, by
    type of console. ``hosts_say``: in upstream mode that is the word of the host, where its nova.conf has one; else it
    never is, since a host could send users to a page of its own."""

    def __init__(self, conductor: Json, settings: Json, bases: Mapping[ConsoleType, str],
                 hosts_say: bool = False) -> None:
        self.conductor, self.settings, self.bases, self._hosts_say = conductor, settings, bases, hosts_say

    def open_console(self, wish: ConsoleRequest) -> Console:
        """The token is in the address alone; its hash is kept for ``[consoleauth]token_ttl`` seconds.
        console.TypeUnavailable: no address of a proxy for it is configured."""
        if wish.type not in self.bases and not self._hosts_say:
            raise errors.console.TypeUnavailable(type=wish.type.value)
        token = tokens.new()
        hashed = token_hash(token)
        grant = ConsoleGrant(wish=wish, token_hash=hashed, ttl_s=self.settings.token_ttl)
        base = self._base(wish.type, self.conductor.keep_console(grant))
        if not base:
            raise errors.console.TypeUnavailable(type=wish.type.value)
        LOG.info("an address of the server's %s console was given out, for %d s (token %s)", wish.type,
                 self.settings.token_ttl, tokens.short(hashed), extra={"server": wish.server_uuid})
        return Console(type=wish.type, url=urls.access_url(wish.type, base, token))

    def check_token(self, check: TokenCheck) -> ConsoleConnection:
        """The token is used up where ``check.redeem`` and ``[consoleauth]single_use_tokens`` both say so. Why a part of
        the cloud does not answer is logged, and not told: console.CannotTell."""
        uses_up = check.redeem and self.settings.single_use_tokens
        try:
            found: ConsoleConnection = self.conductor.check_console(msgspec.structs.replace(check, redeem=uses_up))
        except errors.Unavailable as error:
            LOG.warning("a console's token could not be checked (token %s): %s", tokens.short(check.token_hash),
                        error.message)
            if error.code == errors.console.CannotTell.code:
                raise
            # who comes with any text as a token learns nothing of how this cloud is built
            raise errors.console.CannotTell(away="a part of the cloud") from None
        except (errors.NotFound, errors.Conflict, errors.Invalid) as error:
            LOG.info("a console's token was refused (token %s): %s", tokens.short(check.token_hash), error.code)
            raise
        if check.redeem:
            LOG.info("the server's %s console is opened for user %s of project %s (token %s)", found.type,
                     found.user_id, found.project_id, tokens.short(check.token_hash),
                     extra={"server": found.server_uuid})
        return self._with_base(found)

    def show_token(self, token_hash: str) -> ConsoleConnection:
        """Nothing is used up, and nothing is logged. NotFound; Unavailable."""
        return self._with_base(self.conductor.get_console(token_hash))

    def _with_base(self, found: ConsoleConnection) -> ConsoleConnection:
        """Proxies compare pages' schemes with it."""
        address = msgspec.structs.replace(found.address, access_url_base=self._base(found.type, found.address))
        return msgspec.structs.replace(found, address=address)

    def _base(self, kind: ConsoleType, address: ConsoleAddress) -> str:
        said = address.access_url_base if self._hosts_say else ""
        return said or self.bases.get(kind, "")

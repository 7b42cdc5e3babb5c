"""nova-consoleauth: issues the tokens of consoles and checks them. It keeps nothing: the conductor does, by hash."""

from __future__ import annotations

import logging

import msgspec

from nova import errors
from nova.console import tokens, urls
from nova.model.base import Json
from nova.model.consoles import Console, ConsoleConnection, ConsoleGrant, ConsoleRequest, TokenCheck, token_hash

LOG = logging.getLogger(__name__)


class ConsoleAuthService:
    """ConsoleAuthRPC. ``settings``: the group ``[consoleauth]``."""

    def __init__(self, conductor: Json, settings: Json) -> None:
        self.conductor, self.settings = conductor, settings

    def open_console(self, wish: ConsoleRequest) -> Console:
        """The token is in the address alone; its hash is kept for ``[consoleauth]token_ttl`` seconds."""
        token = tokens.new()
        hashed = token_hash(token)
        address = self.conductor.keep_console(ConsoleGrant(wish=wish, token_hash=hashed,
                                                           ttl_s=self.settings.token_ttl))
        LOG.info("an address of the server's %s console was given out, for %d s (token %s)", wish.type,
                 self.settings.token_ttl, tokens.short(hashed), extra={"server": wish.server_uuid})
        return Console(type=wish.type, url=urls.access_url(wish.type, address.access_url_base, token))

    def check_token(self, check: TokenCheck) -> ConsoleConnection:
        """The token is used up where ``check.redeem`` and ``[consoleauth]single_use_tokens`` both say so. Why a part of
        the cloud does not answer is logged, and not told: console.CanNotTell."""
        uses_up = check.redeem and self.settings.single_use_tokens
        try:
            found: ConsoleConnection = self.conductor.check_console(msgspec.structs.replace(check, redeem=uses_up))
        except errors.Unavailable as error:
            LOG.warning("a console's token could not be checked (token %s): %s", tokens.short(check.token_hash),
                        error.message)
            if error.code == errors.console.CanNotTell.code:
                raise
            # who comes with any text as a token learns nothing of how this cloud is built
            raise errors.console.CanNotTell(away="a part of the cloud") from None
        except (errors.NotFound, errors.Conflict, errors.Invalid) as error:
            LOG.info("a console's token was refused (token %s): %s", tokens.short(check.token_hash), error.code)
            raise
        if check.redeem:
            LOG.info("the server's %s console is opened for user %s of project %s (token %s)", found.type,
                     found.user_id, found.project_id, tokens.short(check.token_hash),
                     extra={"server": found.server_uuid})
        return found

    def show_token(self, token_hash: str) -> ConsoleConnection:
        """Nothing is used up, and nothing is logged. NotFound; Unavailable."""
        found: ConsoleConnection = self.conductor.get_console(token_hash)
        return found

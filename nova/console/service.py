"""The nova-consoleauth service: creates and checks console tokens. Stateless: the conductor stores their hashes."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from nova import errors
from nova.conf.consoleauth import ConsoleauthOptions
from nova.console import tokens, urls
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
from nova.rpc.contracts.conductor_consoles import ConsoleCalls

LOG = logging.getLogger(__name__)


class ConsoleAuthService:
    """Implementation of ConsoleAuthRPC. ``settings``: the group ``[consoleauth]``. ``bases``: base URLs of the proxies,
    by type of console. ``hosts_say``: in upstream mode, the base URL of the host's nova.conf takes precedence. In other
    modes it is ignored, because a host could send users to a page of its own."""

    def __init__(self, conductor: ConsoleCalls, settings: ConsoleauthOptions, bases: Mapping[ConsoleType, str],
                 hosts_say: bool = False) -> None:
        self.conductor, self.settings, self.bases, self._hosts_say = conductor, settings, bases, hosts_say

    def open_console(self, wish: ConsoleRequest) -> Console:
        """Create a token, which is only in the URL; its hash is stored for ``[consoleauth]token_ttl`` seconds. Raises
        console.TypeUnavailable if no proxy's address is configured for the type."""
        if wish.type not in self.bases and not self._hosts_say:
            raise errors.console.TypeUnavailable(type=wish.type.value)
        token = tokens.new()
        hashed = token_hash(token)
        grant = ConsoleGrant(wish=wish, token_hash=hashed, ttl_s=self.settings.token_ttl)
        base = self._base(wish.type, self.conductor.keep_console(grant))
        if not base:
            raise errors.console.TypeUnavailable(type=wish.type.value)
        LOG.info("issued an address of the server's %s console, valid for %d s (token %s)", wish.type,
                 self.settings.token_ttl, tokens.short(hashed), extra={"server": wish.server_uuid})
        return Console(type=wish.type, url=urls.access_url(wish.type, base, token))

    def check_token(self, check: TokenCheck) -> ConsoleConnection:
        """Return the console of a token. The token is used up if ``check.redeem`` and
        ``[consoleauth]single_use_tokens`` are both true. The reason why a part of the cloud does not respond is logged,
        but hidden from the caller: console.CannotTell."""
        uses_up = check.redeem and self.settings.single_use_tokens
        try:
            found: ConsoleConnection = self.conductor.check_console(msgspec.structs.replace(check, redeem=uses_up))
        except errors.Unavailable as error:
            LOG.warning("cannot check a console token (token %s): %s", tokens.short(check.token_hash),
                        error.message)
            if error.code == errors.console.CannotTell.code:
                raise
            # a caller with an arbitrary text as its token must not learn the structure of this cloud
            raise errors.console.CannotTell(away="a part of the cloud") from None
        except (errors.NotFound, errors.Conflict, errors.Invalid) as error:
            LOG.info("refused a console token (token %s): %s", tokens.short(check.token_hash), error.code)
            raise
        if check.redeem:
            LOG.info("opening the server's %s console for user %s of project %s (token %s)", found.type,
                     found.user_id, found.project_id, tokens.short(check.token_hash),
                     extra={"server": found.server_uuid})
        return self._with_base(found)

    def show_token(self, token_hash: str) -> ConsoleConnection:
        """Return the console of a token, without using it up or logging. Raises NotFound and Unavailable."""
        return self._with_base(self.conductor.get_console(token_hash))

    def _with_base(self, found: ConsoleConnection) -> ConsoleConnection:
        """Return the console with its base URL, with which proxies compare a page's scheme."""
        address = msgspec.structs.replace(found.address, access_url_base=self._base(found.type, found.address))
        return msgspec.structs.replace(found, address=address)

    def _base(self, kind: ConsoleType, address: ConsoleAddress) -> str:
        said = address.access_url_base if self._hosts_say else ""
        return said or self.bases.get(kind, "")

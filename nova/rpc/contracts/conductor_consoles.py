"""The part of ``ConductorRPC`` for nova-consoleauth."""

from __future__ import annotations

from nova.model.guest.consoles import ConsoleAddress, ConsoleConnection, ConsoleGrant, TokenCheck
from nova.rpc.interface import call


class ConsoleCalls:
    """Addresses of consoles, and the consoles of tokens. Only a token's hash is ever transferred."""

    @call(since="1.2")
    def keep_console(self, grant: ConsoleGrant) -> ConsoleAddress:
        """Ask the server's host for the console's address, and store the token's hash for it. Raises NotFound;
        WrongState; Conflict without a host or a running guest; Invalid or NotSupported without such a console;
        Unavailable if the host does not answer."""

    @call(since="1.2")
    def check_console(self, check: TokenCheck) -> ConsoleConnection:
        """Return the console of a token, if its server is still on that host, its consoles were not closed, and the
        host confirms the console. Raises NotFound, Conflict (already used), Invalid (issued for another proxy) or
        Unavailable."""

    @call(since="1.2")
    def get_console(self, token_hash: str) -> ConsoleConnection:
        """Return the same for an administrator's proxy, which connects on its own: a used token is NotFound, too.
        Raises Unavailable if its host does not answer."""

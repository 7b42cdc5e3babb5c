"""Consoles: a token is bound to its server's place, and is valid while the server is there and its host confirms it.

A move or a delete can happen in between. The server's epoch and host are read before its host is asked, and the row is
only written if both are unchanged. An action that ends consoles has therefore either changed them by then, or comes
later and ends this token too. A check reads them again after the host has answered.
"""

from __future__ import annotations

import logging

from nova import context, errors, failures
from nova.conductor.engine.deps import Deps
from nova.db.host import services
from nova.db.server import consoles
from nova.db.server.consoles import ConsolePlace, FoundToken
from nova.db.sql.engine import Connection
from nova.model.guest.consoles import (
    ConsoleAddress,
    ConsoleConnection,
    ConsoleGrant,
    ConsoleRequest,
    ConsoleType,
    TokenCheck,
)
from nova.model.server.states import TaskState

LOG = logging.getLogger(__name__)

#: Tasks in which a server's console cannot be shown (Compute API guide, server concepts).
BUSY = frozenset({TaskState.DELETING, TaskState.MIGRATING})
#: The host does not answer, or its hypervisor does not.
AWAY = (errors.Unavailable, errors.HostRefused)
THE_HOST = "the server's host"
#: Expired tokens that are deleted in one transaction, and the transactions of one run.
BATCH, TURNS = 200, 20


class ConsoleQueries:
    """The console calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def keep_console(self, grant: ConsoleGrant) -> ConsoleAddress:
        """Store the token's hash, and return the address of the console.

        Raises server.NotFound, server.WrongState, server.NoHost, server.NoGuest; console.Moving if the server left its
        host meanwhile; console.HostAway, console.HostTooOld, console.NotReady, console.NotSupported,
        console.TypeUnavailable.
        """
        request = grant.wish
        with self.deps.cell.reading() as tx:
            server = consoles.place(tx, request.server_uuid)
        address = self._asked(request, server)
        kept = consoles.KeptToken(
            token_hash=grant.token_hash, console_type=request.type.value, server_uuid=request.server_uuid,
                                  host=server.host or "",
            epoch=server.epoch, user_id=context.current().user_id or "", address=address, ttl_s=grant.ttl_s)
        if not self.deps.transact_together(request.server_uuid, lambda tx: consoles.keep(tx, kept)):
            raise errors.console.Moving(server=request.server_uuid)
        return address

    def _asked(self, request: ConsoleRequest, server: ConsolePlace) -> ConsoleAddress:
        """Return the console's address from the server's host, with its errors converted to those of the user's
        request."""
        facts = {"server": request.server_uuid, "type": request.type.value}
        if server.task_state in BUSY:
            raise errors.server.WrongState(action="get the console of", server=request.server_uuid,
                                           attribute="task_state",
                                           value=server.task_state)
        if not server.host:
            raise errors.server.NoHost(**facts)
        if self._is_down(server):
            raise errors.console.HostAway(**facts)
        try:
            return self._found(server, server.host, request)
        except errors.console.Elsewhere:
            raise
        except errors.NotFound:
            raise errors.server.NoGuest(**facts) from None
        except errors.Conflict as error:
            raise errors.console.NotReady(**facts, reason=error.message) from None
        except errors.Invalid:
            raise errors.console.TypeUnavailable(**facts) from None
        except errors.NotSupported:
            raise errors.console.NotSupported(**facts) from None
        except errors.PeerTooOld:
            raise errors.console.HostTooOld(**facts) from None
        except AWAY:
            raise errors.console.HostAway(**facts) from None

    def _found(self, row: ConsolePlace | FoundToken, host: str, request: ConsoleRequest) -> ConsoleAddress:
        """Return the console's address that the host reports. Raises the errors of ``ComputeRPC.find_console``, and
        console.Elsewhere if the address belongs to another host, so that no proxy connects there."""
        found: ConsoleAddress = self.deps.compute.find_console(host, request.server_uuid, request.type)
        known = row.host_addresses or ()
        if known and found.host is not None and found.host not in known:
            LOG.error("host %s reports a console of its guest at %s, which is not one of its addresses (%s)", host,
                      found.host, ", ".join(known), extra={"server": request.server_uuid})
            raise errors.console.Elsewhere()
        return found

    def _is_down(self, row: ConsolePlace | FoundToken) -> bool:
        """True if the host is known to be down: nova does not wait for it then."""
        return not services.is_up(row, self.deps.settings.service_down_time)

    # -- tokens in use

    def check_console(self, check: TokenCheck) -> ConsoleConnection:
        """Return the address of a token's console, confirmed by its host; ``redeem`` uses the token up.

        Raises console.Unknown, console.Ended, console.Expired, console.OtherKind, console.Used; console.Off if the
        guest is off; console.CannotTell if its host does not answer.
        """
        with self.deps.cell.reading() as tx:
            row = _good(consoles.find(tx, check.token_hash), check)
        if self._is_down(row):
            raise errors.console.CannotTell(away=THE_HOST)
        self._confirm(row)
        if check.redeem:
            return _connection(self.deps.cell.transact(lambda tx: _redeemed(tx, row.id, check)))
        with self.deps.cell.reading() as tx:  # again: it may have ended while its host was asked
            return _connection(_good(consoles.find(tx, check.token_hash), check))

    def _confirm(self, row: FoundToken) -> None:
        """Confirm with the host that the console is still at the token's address, because other guests may reuse ports.

        A changed address ends the token: if the port returned to the console later, its user in between would be
        unknown.
        """
        try:
            request = ConsoleRequest(server_uuid=row.server_uuid, type=ConsoleType(row.console_type))
            now = self._found(row, row.host, request)
        except errors.console.Elsewhere:
            raise
        except (errors.NotFound, errors.Invalid, errors.NotSupported):
            now = None
        except errors.Conflict:
            raise errors.console.Off() from None
        except (*AWAY, errors.PeerTooOld):
            raise errors.console.CannotTell(away=THE_HOST) from None
        if now is None or _spot(now) != _spot(row.address):
            self.deps.cell.transact(lambda tx: consoles.end(tx, row.id))
            raise errors.console.Ended()

    def get_console(self, token_hash: str) -> ConsoleConnection:
        """Return a token's console for proxies that are not part of nova, after the same checks."""
        with failures.replaced(errors.console.Used, lambda _: errors.console.Unknown()):
            return self.check_console(TokenCheck(token_hash=token_hash))


def _spot(address: ConsoleAddress) -> tuple[str | int | None, ...]:
    return address.host, address.port, address.tls_port, address.socket_path


def _good(row: FoundToken | None, check: TokenCheck, mine: bool = False) -> FoundToken:
    """Return the token's row if it is valid by the records. ``mine``: this process has just redeemed it."""
    if row is None:
        raise errors.console.Unknown()
    if row.server_host is None or row.server_host != row.host or row.console_epoch > row.epoch:
        raise errors.console.Ended()
    if row.expires_at <= consoles.epoch_seconds(row.clock):
        raise errors.console.Expired()
    if check.types and row.console_type not in [type.value for type in check.types]:
        raise errors.console.OtherKind(type=row.console_type)
    if row.used_at is not None and not mine:
        raise errors.console.Used()
    return row


def _redeemed(tx: Connection, key: int, check: TokenCheck) -> FoundToken:
    """Redeem the token and return its row if it is still valid; otherwise raise, which rolls the change back."""
    if not consoles.redeem(tx, key):
        raise errors.console.Used()
    return _good(consoles.find(tx, check.token_hash), check, mine=True)


def _connection(row: FoundToken) -> ConsoleConnection:
    return ConsoleConnection(type=ConsoleType(row.console_type), server_uuid=row.server_uuid, user_id=row.user_id,
                             project_id=row.project_id, address=row.address, expires_at=row.expires_at, host=row.host)


def drop_expired(deps: Deps) -> int:
    """Delete expired tokens in small batches, with a limit for each run; return how many."""
    count = 0
    for _ in range(TURNS):
        dropped = deps.cell.transact(lambda tx: consoles.drop_expired(tx, BATCH))
        count += dropped
        if dropped < BATCH:
            break
    return count

"""Message authentication between hosts and conductors: an HMAC with the host's secret.

The secret that a host shares with the conductors authenticates both directions: the host's calls and replies, and the
conductors' orders and replies. A proof covers the sender, the contract and its version, the method, the reply queue,
the message's id, the time, and the body. So no part can be changed, and no message is accepted twice.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from nova import errors, failures
from nova.rpc import codec
from nova.rpc.interface import Contract, Method

LOG = logging.getLogger(__name__)

WINDOW_S = 60.0  # maximum clock difference; message ids are remembered for this time, before and after
#: In upstream mode, the key for the message by which an unknown host registers its secret. It is public: the first host
#: that uses a name gets it.
FIRST_CONTACT = "a host introduces itself"
BETWEEN = "."  # separates a reply's proof from its text; neither contains it

Envelope = dict[str, object]


class HostKeys(Protocol):
    """Source of hosts' secrets: a host has its own secret, a conductor those of all enrolled hosts."""

    def __call__(self, host: str, introducing: bool = False) -> Iterable[str]:
        """Return the keys for messages from or to ``host``, the newest first; empty if it is not enrolled.
        ``introducing``: include the token that the host may use to register."""


class AuthenticatedMethod(NamedTuple):
    """A method of a contract, and the host whose secret authenticates it."""

    contract: type[Contract]
    method: Method
    host: str


class MessageIds:
    """Ids of the messages of the current and the previous window."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._now: set[str] = set()
        self._before: set[str] = set()
        self._turned_at = clock()

    def __len__(self) -> int:
        return len(self._now) + len(self._before)

    def add(self, message_id: str) -> bool:
        """Return whether the id is new."""
        with self._lock:
            if self._clock() - self._turned_at > 2 * WINDOW_S:
                self._now, self._before, self._turned_at = set(), self._now, self._clock()
            if message_id in self._now or message_id in self._before:
                return False
            self._now.add(message_id)
            return True


class PersistentMessageIds(MessageIds):
    """Ids of messages that are also kept in a file, so that a restarted daemon knows the messages that it had accepted.
    If the file cannot be read or written, an ERROR is logged, and the ids are kept only in memory."""

    def __init__(self, clock: Callable[[], float], path: Path) -> None:
        super().__init__(clock)
        self._path, self._writable = path, True
        self._now.update(self._read())
        self._write("w", self._now)

    def add(self, message_id: str) -> bool:
        turned_at = self._turned_at
        if not super().add(message_id):
            return False
        if turned_at == self._turned_at:
            self._write("a", (message_id,))
        else:  # the file must drop the forgotten ids
            self._write("w", self._before | self._now)
        return True

    def _read(self) -> set[str]:
        try:
            return set(self._path.read_text().split())
        except FileNotFoundError:
            return set()
        except (OSError, UnicodeDecodeError) as error:
            LOG.error("cannot read %s: %s. An order of the last minute could be accepted a second time", self._path,
                      error)
            return set()

    def _write(self, mode: str, ids: Iterable[str]) -> None:
        try:
            with open(self._path, mode, opener=_private) as file:
                file.writelines(f"{one}\n" for one in ids)
            self._writable = True
        except OSError as error:
            if self._writable:
                LOG.error("cannot write %s: %s. After a restart, an order of the minute before could be accepted a "
                          "second time. Free disk space, or make the folder writable", self._path, error.strerror)
            self._writable = False


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Proofs:
    """Creation and checks of proofs with these keys. ``folder``: where a host stores the ids of accepted messages, in a
    file per contract."""

    def __init__(self, keys: HostKeys, clock: Callable[[], float] = time.time, folder: Path | None = None) -> None:
        self._keys, self._clock, self._folder = keys, clock, folder
        self._remembered: dict[str, MessageIds] = {}
        self._lock = threading.Lock()

    def ask(self, spoken: AuthenticatedMethod, envelope: Envelope, reply_to: str, send: Callable[[Envelope], object]
            ) -> object:
        """Send the envelope with its proof, and return the verified reply's text. Raises daemon.RpcNotEnrolled without
        a secret."""
        key = next(iter(self._keys(spoken.host)), "")
        if not key:
            raise errors.daemon.RpcNotEnrolled(host=spoken.host)
        message_id = secrets.token_hex(16)
        sealed = {**envelope, "reply_to": reply_to, "id": message_id, "at": f"{self._clock():.3f}"}
        answer = send({**sealed, "proof": _of_message(key, spoken, sealed)})
        return self.opened(key, message_id, answer) if spoken.method.wants_answer else None

    def check(self, spoken: AuthenticatedMethod, envelope: Envelope) -> str:
        """Return the key that proves a message, for its reply. Raises daemon.RpcNotEnrolled, RpcNotProven, RpcWrongTime
        or RpcReplayed."""
        given, known = str(envelope.get("proof")).encode(), False
        for key in filter(None, self._keys(spoken.host, spoken.method.introduces)):
            known = True
            if hmac.compare_digest(_of_message(key, spoken, envelope).encode(), given):
                self._check_new(spoken, envelope)
                return key
        raise (errors.daemon.RpcNotProven if known else errors.daemon.RpcNotEnrolled)(host=spoken.host)

    def remembers(self) -> int:
        """Return the number of remembered message ids."""
        return sum(map(len, self._remembered.values()))

    def _memory(self, topic: str) -> MessageIds:
        with self._lock:
            if topic not in self._remembered:
                kept = self._folder and self._folder / f"taken.{topic}"
                self._remembered[topic] = PersistentMessageIds(self._clock, kept) if kept else MessageIds(self._clock)
            return self._remembered[topic]

    def _check_new(self, spoken: AuthenticatedMethod, envelope: Envelope) -> None:
        """Check the time and id of a message whose proof is valid, so both are what the sender wrote."""
        with failures.replaced(ValueError, lambda _: errors.daemon.RpcMalformed(reason="invalid time in its proof")):
            late_s = self._clock() - float(str(envelope.get("at")))
        if "id" not in envelope:
            raise errors.daemon.RpcMalformed(reason="it has no id")
        if not abs(late_s) <= WINDOW_S:
            raise errors.daemon.RpcWrongTime(host=spoken.host, seconds=late_s)
        if not self._memory(spoken.contract.topic).add(_id_of(envelope)):
            raise errors.daemon.RpcReplayed(host=spoken.host)

    @staticmethod
    def sealed(key: str, message_id: object, text: str) -> str:
        """Return a reply's text with its proof."""
        return _of_answer(key, str(message_id), text) + BETWEEN + text

    @staticmethod
    def opened(key: str, message_id: str, answer: object) -> str:
        """Return a reply's verified text. A receiver without the key can only refuse a message, with one of
        :data:`REFUSALS`; that error is raised. Raises daemon.RpcAnswerNotProven."""
        given, between, text = str(answer).partition(BETWEEN)
        if not between:
            raise _refusal(answer)
        if not hmac.compare_digest(_of_answer(key, message_id, text).encode(), given.encode()):
            raise errors.daemon.RpcAnswerNotProven()
        return text


def _id_of(envelope: Envelope) -> str:
    """Return an id of bounded length without white space, for any id that the sender chose."""
    return hashlib.blake2b(str(envelope["id"]).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


#: Errors that may refuse a message without a proof: its sender has to know them.
REFUSALS = frozenset(row.code for row in (
    errors.daemon.RpcNotEnrolled, errors.daemon.RpcNotProven, errors.daemon.RpcIsolated, errors.daemon.RpcWrongTime,
    errors.daemon.RpcReplayed, errors.daemon.RpcOrderNotProven, errors.daemon.RpcMalformed))


def _refusal(answer: object) -> errors.NovaError:
    error = codec.unpack(codec.from_text(answer), codec.CallReply).error
    if error is None or error[1] not in REFUSALS:
        return errors.daemon.RpcAnswerNotProven()
    return errors.from_wire(*error)


def _of_message(key: str, spoken: AuthenticatedMethod, envelope: Envelope) -> str:
    said = [str(envelope.get(name)) for name in ("sender", "contract", "reply_to", "id", "at", "body")]
    return codec.proof(key, "message", spoken.contract.topic, spoken.method.name, *said)


def _of_answer(key: str, message_id: str, text: str) -> str:
    return codec.proof(key, "answer", message_id, text)

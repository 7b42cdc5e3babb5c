"""Proofs: what crosses between a host and the conductors bears an HMAC that only that host's secret makes.

A host's calls and its answers are proven to the conductors, and their orders and answers to the host, by the one secret
that both know. A proof is of who sends, the contract and its version, the method, the queue for the answer, the
message's id, the time, and the body: none of them can be changed, and no message counts twice.
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

from nova import errors
from nova.model.base import Json
from nova.rpc import codec
from nova.rpc.interface import Contract, Method

LOG = logging.getLogger(__name__)

WINDOW_S = 60.0  # what clocks may differ by; for so long a message's id is remembered, before and after
#: In upstream mode, proves the message by which a host that is not known brings its secret. It is no secret: whoever
#: comes first has the name.
FIRST_CONTACT = "a host introduces itself"
BETWEEN = "."  # a proof and what it is of, in an answer: neither has one in it

Envelope = dict[str, object]


class HostKeys(Protocol):
    """Who knows hosts' secrets: a host its own, a conductor all that are enrolled."""

    def __call__(self, host: str, introducing: bool = False) -> Iterable[str]:
        """What proves a message from or to ``host``, the newest first; nothing when it is not enrolled.
        ``introducing``: with the token that it may introduce itself by."""


class Spoken(NamedTuple):
    """A method of a contract, and the host whose secret proves it."""

    contract: type[Contract]
    method: Method
    host: str


class Remembered:
    """Ids of the messages of the last window, and of the one before."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._now: set[str] = set()
        self._before: set[str] = set()
        self._turned_at = clock()

    def __len__(self) -> int:
        return len(self._now) + len(self._before)

    def add(self, message_id: str) -> bool:
        """Whether it is new."""
        with self._lock:
            if self._clock() - self._turned_at > 2 * WINDOW_S:
                self._now, self._before, self._turned_at = set(), self._now, self._clock()
            if message_id in self._now or message_id in self._before:
                return False
            self._now.add(message_id)
            return True


class KeptRemembered(Remembered):
    """The same, in a file, too: a daemon that starts again knows what it had taken. Of a file that cannot be read or
    written an ERROR is logged, and the daemon goes on with what it has in memory."""

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
        else:  # what was forgotten goes from the file
            self._write("w", self._before | self._now)
        return True

    def _read(self) -> set[str]:
        try:
            return set(self._path.read_text().split())
        except FileNotFoundError:
            return set()
        except (OSError, UnicodeDecodeError) as error:
            LOG.error("%s cannot be read: %s. An order of the last minute could be taken a second time", self._path,
                      error)
            return set()

    def _write(self, mode: str, ids: Iterable[str]) -> None:
        try:
            with open(self._path, mode, opener=_private) as file:
                file.writelines(f"{one}\n" for one in ids)
            self._writable = True
        except OSError as error:
            if self._writable:
                LOG.error("%s cannot be written: %s. After a restart, an order of the minute before could be taken a "
                          "second time. Make room, or the folder writable", self._path, error.strerror)
            self._writable = False


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Proofs:
    """Makes and checks them, by these keys. ``folder``: where a host keeps what it has taken, in a file for each of its
    contracts."""

    def __init__(self, keys: HostKeys, clock: Callable[[], float] = time.time, folder: Path | None = None) -> None:
        self._keys, self._clock, self._folder = keys, clock, folder
        self._remembered: dict[str, Remembered] = {}
        self._lock = threading.Lock()

    def ask(self, spoken: Spoken, envelope: Envelope, reply_to: str, send: Callable[[Envelope], Json]) -> Json:
        """Send the envelope with its proof; the answer's text, proven. daemon.RpcNotEnrolled: there is no secret."""
        key = next(iter(self._keys(spoken.host)), "")
        if not key:
            raise errors.daemon.RpcNotEnrolled(host=spoken.host)
        message_id = secrets.token_hex(16)
        sealed = {**envelope, "reply_to": reply_to, "id": message_id, "at": f"{self._clock():.3f}"}
        answer = send({**sealed, "proof": _of_message(key, spoken, sealed)})
        return self.opened(key, message_id, answer) if spoken.method.wants_answer else None

    def check(self, spoken: Spoken, envelope: Envelope) -> str:
        """The key that proves a message, for its answer. daemon.RpcNotEnrolled, RpcNotProven, RpcWrongTime,
        RpcReplayed."""
        given, known = str(envelope.get("proof")).encode(), False
        for key in filter(None, self._keys(spoken.host, spoken.method.introduces)):
            known = True
            if hmac.compare_digest(_of_message(key, spoken, envelope).encode(), given):
                self._check_new(spoken, envelope)
                return key
        raise (errors.daemon.RpcNotProven if known else errors.daemon.RpcNotEnrolled)(host=spoken.host)

    def remembers(self) -> int:
        """Ids of messages that would be known again."""
        return sum(map(len, self._remembered.values()))

    def _memory(self, topic: str) -> Remembered:
        with self._lock:
            if topic not in self._remembered:
                kept = self._folder and self._folder / f"taken.{topic}"
                self._remembered[topic] = KeptRemembered(self._clock, kept) if kept else Remembered(self._clock)
            return self._remembered[topic]

    def _check_new(self, spoken: Spoken, envelope: Envelope) -> None:
        """The proof holds: what it says of time and id is the sender's own word."""
        try:
            late_s = self._clock() - float(str(envelope.get("at")))
        except ValueError:
            raise errors.daemon.RpcMalformed(reason="the time in its proof") from None
        if "id" not in envelope:
            raise errors.daemon.RpcMalformed(reason="it has no id")
        if not abs(late_s) <= WINDOW_S:
            raise errors.daemon.RpcWrongTime(host=spoken.host, seconds=late_s)
        if not self._memory(spoken.contract.topic).add(_id_of(envelope)):
            raise errors.daemon.RpcReplayed(host=spoken.host)

    @staticmethod
    def sealed(key: str, message_id: object, text: str) -> str:
        """An answer's text with its proof."""
        return _of_answer(key, str(message_id), text) + BETWEEN + text

    @staticmethod
    def opened(key: str, message_id: str, answer: object) -> str:
        """An answer's text. Who has no key for a proof can refuse the message, for one of :data:`REFUSALS`, and say
        nothing else. daemon.RpcAnswerNotProven."""
        given, between, text = str(answer).partition(BETWEEN)
        if not between:
            raise _refusal(answer)
        if not hmac.compare_digest(_of_answer(key, message_id, text).encode(), given.encode()):
            raise errors.daemon.RpcAnswerNotProven()
        return text


def _id_of(envelope: Envelope) -> str:
    """A word of bounded length, without white space, whatever the sender chose."""
    return hashlib.blake2b(str(envelope["id"]).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


#: Reasons not to take a message that may be told without a proof: who sent it has to know them.
REFUSALS = frozenset(row.code for row in (
    errors.daemon.RpcNotEnrolled, errors.daemon.RpcNotProven, errors.daemon.RpcIsolated, errors.daemon.RpcWrongTime,
    errors.daemon.RpcReplayed, errors.daemon.RpcOrderNotProven, errors.daemon.RpcMalformed))


def _refusal(answer: object) -> errors.NovaError:
    error = codec.unpack(codec.from_text(answer), codec.CallReply).error
    if error is None or error[1] not in REFUSALS:
        return errors.daemon.RpcAnswerNotProven()
    return errors.from_wire(*error)


def _of_message(key: str, spoken: Spoken, envelope: Envelope) -> str:
    said = [str(envelope.get(name)) for name in ("sender", "contract", "reply_to", "id", "at", "body")]
    return codec.proof(key, "message", spoken.contract.topic, spoken.method.name, *said)


def _of_answer(key: str, message_id: str, text: str) -> str:
    return codec.proof(key, "answer", message_id, text)

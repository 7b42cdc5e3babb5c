"""The steps of ``nova-manage secrets split``: each may be the last one, and the next run goes on.

First the passwords of new broker users, in a file of root's; then the users at the broker; then each daemon's file; at
last nova.conf, without its secrets. So at every moment each daemon finds what it needs, and no file names a broker user
that is not there.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nova.conf._security_mode import BOUNDED_OPTIONS
from nova.manage.secret_files import broker, lines, readers
from nova.manage.secret_files.broker import BrokerUser
from nova.manage.secret_files.lines import Name

PASSWORDS = ".broker-passwords"
TRANSPORT: Name = (readers.DEFAULT, "transport_url")
HOSTS_TRANSPORT: Name = (readers.DEFAULT, "hosts_transport_url")
OWN_MODE = 0o600


class Account(NamedTuple):
    """Numbers of the user that a file is given to."""

    uid: int
    gid: int


class CannotSplit(Exception):
    """Why nothing was changed, and what to do."""


class SplitStep(NamedTuple):
    """What is done at once, or not at all, and its words."""

    words: str
    run: Callable[[], None]


class SplitRequest(NamedTuple):
    """What the command line asks for. ``accounts``: by daemon, of those whose files are written; None for a file that
    stays ours. ``passwords``: the file of the broker users' passwords; None: one in ``etc``, which is removed in the
    end. ``new_users``: whether each daemon gets a broker user of its own."""

    etc: Path
    accounts: Mapping[str, Account | None]
    passwords: Path | None = None
    new_users: bool = True


class Split:
    """What is to be done with the files of a folder. ``known``: the broker's users; None: it cannot be asked here.
    ``make``: what makes a user there. CannotSplit."""

    def __init__(self, request: SplitRequest, known: frozenset[str] | None, make: Callable[[BrokerUser], None]) -> None:
        self.request, self._known, self._make = request, known, make
        folder = sorted((request.etc / "nova.conf.d").glob("*.conf"))
        self.sources = [path for path in (request.etc / "nova.conf", *folder) if path.exists()]
        if not self.sources:
            raise CannotSplit(f"there is no {request.etc}/nova.conf: name its folder with --etc")
        self._texts = {path: path.read_text() for path in self.sources}
        self.is_controller = bool(self._common(TRANSPORT)) or any(
            lines.value(self._own(daemon), TRANSPORT) for daemon in request.accounts)
        self._check_mode()
        self._passwords = self._read_passwords()
        self.users = self._broker_users() if request.new_users else []
        self._check_users()

    # -- what there is

    def _common(self, name: Name) -> str:
        """The last value that all daemons read."""
        return next((found for path in reversed(self.sources) if (found := lines.value(self._texts[path], name))), "")

    def _check_mode(self) -> None:
        """CannotSplit: in upstream mode hosts and control daemons have one URL, whose password proves them."""
        conductors = self._own(readers.CONDUCTOR)
        is_bounded = any(self._common(name) or lines.value(conductors, name) for name in BOUNDED_OPTIONS)
        if self.is_controller and not is_bounded:
            raise CannotSplit("this cloud is in upstream mode, in which all daemons and hosts share "
                              "[DEFAULT]transport_url. Move it to bounded mode first: see 'Security modes' in "
                              "doc/security.rst")

    def path_of(self, daemon: str) -> Path:
        """Its own file."""
        return self.request.etc / f"{daemon}.conf"

    def _own(self, daemon: str) -> str:
        path = self.path_of(daemon)
        return path.read_text() if path.exists() else ""

    def unread(self) -> list[Name]:
        """Secrets of nova.conf that no daemon of this machine reads."""
        read = {name for daemon in self.request.accounts for name in readers.secrets_of(daemon)}
        return sorted(name for name in self._secret_names() if name not in read)

    def _secret_names(self) -> frozenset[Name]:
        found = frozenset(name for text in self._texts.values() for name in lines.names(text))
        return frozenset(name for name in found if name in readers.READERS)

    # -- broker users

    @property
    def passwords_path(self) -> Path:
        """Where they are kept meanwhile, or for other controllers."""
        return self.request.passwords or self.request.etc / PASSWORDS

    def _read_passwords(self) -> dict[str, str]:
        if not self.passwords_path.exists():
            return {}
        try:
            found: dict[str, str] = json.loads(self.passwords_path.read_text())
        except ValueError:
            raise CannotSplit(f"{self.passwords_path} is not what this command writes: remove it") from None
        return found

    def _broker_users(self) -> list[BrokerUser]:
        return [user for daemon in self.request.accounts if (user := self._broker_user(daemon)) is not None]

    def _broker_user(self, daemon: str) -> BrokerUser | None:
        """Its password is that of its file, of an earlier run, or a new one."""
        urls = {name: lines.value(self._own(daemon), name) or self._common(name) for name in _urls_of(daemon)}
        vhosts = tuple(broker.vhost_in(url) for url in urls.values() if url)
        if daemon not in readers.CONTROL or not vhosts or any("$" in url for url in urls.values()):
            return None
        own = dict(broker.user_in(url) for url in urls.values()).get(daemon)
        return BrokerUser(daemon, own or self._passwords.get(daemon) or secrets.token_urlsafe(32), vhosts)

    def _check_users(self) -> None:
        """CannotSplit: a user is there whose password we do not know; another controller's daemon uses it."""
        strangers = [user.name for user in self.users if self._known and user.name in self._known
                     and not self._knows(user)]
        if strangers:
            raise CannotSplit(f"the broker has the users {', '.join(strangers)} already, for the daemons of another "
                              "controller. Run the command there with --passwords FILE, copy that file to this "
                              "machine, and name it here, too")

    def _knows(self, user: BrokerUser) -> bool:
        has_own = broker.user_in(lines.value(self._own(user.name), TRANSPORT)) == (user.name, user.password)
        return has_own or user.name in self._passwords

    # -- the steps

    def steps(self) -> Iterator[SplitStep]:
        """In their order. None where nothing is to be done."""
        yield from self._password_steps()
        if self._known is not None:
            for user in self.users:
                yield SplitStep(f"broker: the user {user.name}, with its rights in {', '.join(user.vhosts)}",
                           lambda user=user: self._make(user))  # type: ignore[misc]
        for daemon, account in self.request.accounts.items():
            yield from self._file_steps(daemon, account)
        for path in reversed(self.sources):
            yield from self._removal_steps(path)
        if self.request.passwords is None and (self.passwords_path.exists() or self._new_passwords()):
            yield SplitStep(f"{self.passwords_path}: removed", lambda: self.passwords_path.unlink(missing_ok=True))

    def _new_passwords(self) -> dict[str, str]:
        """Of users that no file has."""
        return {user.name: user.password for user in self.users if not self._knows(user)}

    def _password_steps(self) -> Iterator[SplitStep]:
        new = self._new_passwords()
        kept = {**self._passwords, **new}
        if self.request.passwords is not None:
            kept |= {user.name: user.password for user in self.users}
        if kept != self._passwords:
            yield SplitStep(f"{self.passwords_path}: passwords of new broker users (mode 0600)",
                       lambda: write(self.passwords_path, json.dumps(kept, indent=1) + "\n", OWN_MODE, None))

    def _file_steps(self, daemon: str, account: Account | None) -> Iterator[SplitStep]:
        path, before = self.path_of(daemon), self._own(daemon)
        text, changed = self._with_secrets(daemon, before)
        if not text:
            return
        if changed:
            listed = ", ".join(shown(name) for name in changed)
            yield SplitStep(f"{path}: {listed} (owner {readers.user_of(daemon)}, mode 0600)",
                       lambda: write(path, text, OWN_MODE, account))
        elif not _is_private(path, account):
            yield SplitStep(f"{path}: owner {readers.user_of(daemon)}, mode 0600",
                       lambda: write(path, text, OWN_MODE, account))

    def _with_secrets(self, daemon: str, before: str) -> tuple[str, list[Name]]:
        """The daemon's file as it shall be, and what is new in it. What it says already stays."""
        text, changed = before or f"# Secrets of {daemon}. Only its user may read them.\n", []
        for name in readers.secrets_of(daemon):
            if name not in lines.names(before):
                for found in self._lines_of(name):
                    text = lines.added(text, name, [found])
                    changed.append(name)
        for user in self.users:
            if user.name == daemon:
                text, replaced = self._with_user(text, user)
                changed += replaced
        return (text if before or changed else ""), list(dict.fromkeys(changed))

    def _lines_of(self, name: Name) -> list[str]:
        return [line for path in self.sources for line in lines.taken(self._texts[path], name)]

    @staticmethod
    def _with_user(text: str, user: BrokerUser) -> tuple[str, list[Name]]:
        """With the daemon's own user in its URLs."""
        changed = []
        for name in _urls_of(user.name):
            url = lines.value(text, name)
            if url and broker.user_in(url) != (user.name, user.password):
                text = lines.added(lines.without(text, {name}), name,
                                   [f"{name[1]} = {broker.with_user(url, user.name, user.password)}\n"])
                changed.append(name)
        return text, changed

    def _removal_steps(self, path: Path) -> Iterator[SplitStep]:
        gone = sorted(lines.names(self._texts[path]) & self._secret_names() - set(self.unread()))
        if gone:
            found = path.stat()
            yield SplitStep(f"{path}: {', '.join(shown(name) for name in gone)} removed",
                       lambda: write(path, lines.without(self._texts[path], gone), found.st_mode & 0o7777,
                                     Account(found.st_uid, found.st_gid)))


def _urls_of(daemon: str) -> tuple[Name, ...]:
    """Where it is by a user of its own. To hosts and their daemons, a host's user is that of its name."""
    return (TRANSPORT, HOSTS_TRANSPORT) if daemon == readers.CONDUCTOR else (TRANSPORT,)


def shown(name: Name) -> str:
    """An option as messages name it."""
    return f"[{name[0]}]{name[1]}"


def write(path: Path, text: str, mode: int, account: Account | None) -> None:
    """All of a file or nothing, also when the machine loses its power; never readable by others meanwhile."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWN_MODE)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        if account is not None:
            os.fchown(file.fileno(), account.uid, account.gid)
        os.fchmod(file.fileno(), mode)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _is_private(path: Path, account: Account | None) -> bool:
    found = path.stat()
    return not found.st_mode & 0o077 and (account is None or found.st_uid == account.uid)


def own_commands(users: Sequence[BrokerUser], path_of: Callable[[str], Path]) -> Iterator[str]:
    """For where rabbitmqctl can be run: the passwords come out of the files, and are on no command line."""
    for user in users:
        pattern = rf"s|^transport_url *= *rabbit://{user.name}:\([^@]*\)@.*|\1|p"
        yield f"sed -n '{pattern}' {path_of(user.name)} | {broker.shown(['add_user', user.name])}"
        yield from (broker.shown(words) for words in user.rights())

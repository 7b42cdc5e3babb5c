"""Steps of ``nova-manage secrets split``: it can be interrupted after each step, and the next run continues.

The order is: the passwords of new broker users, in a file of root's; the users at the broker; each service's file;
finally nova.conf, without its secrets. So each service always finds its secrets, and no file names a broker user that
does not exist.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nova import failures
from nova.conf._security_mode import BOUNDED_OPTIONS
from nova.manage.secret_files import broker, lines, readers
from nova.manage.secret_files.broker import BrokerUser
from nova.manage.secret_files.lines import Name

PASSWORDS = ".broker-passwords"
TRANSPORT: Name = (readers.DEFAULT, "transport_url")
HOSTS_TRANSPORT: Name = (readers.DEFAULT, "hosts_transport_url")
OWN_MODE = 0o600


class Account(NamedTuple):
    """Numeric owner of a file."""

    uid: int
    gid: int


class CannotSplit(Exception):
    """A refused command, without any change; the text has the reason and the cure."""


class SplitStep(NamedTuple):
    """An atomic step and its description."""

    words: str
    run: Callable[[], None]


class SplitRequest(NamedTuple):
    """Options of the command line. ``accounts``: service -> owner of the file to write; None: the current user.
    ``passwords``: the file of the broker users' passwords; None: one in ``etc``, which is removed at the end.
    ``new_users``: whether each service gets its own broker user."""

    etc: Path
    accounts: Mapping[str, Account | None]
    passwords: Path | None = None
    new_users: bool = True


class Split:
    """Plan for the files of a directory. ``known``: the broker's users; None: the broker cannot be asked here.
    ``make``: creates a user there. Raises CannotSplit."""

    def __init__(self, request: SplitRequest, known: frozenset[str] | None, make: Callable[[BrokerUser], None]) -> None:
        self.request, self._known, self._make = request, known, make
        folder = sorted((request.etc / "nova.conf.d").glob("*.conf"))
        self.sources = [path for path in (request.etc / "nova.conf", *folder) if path.exists()]
        if not self.sources:
            raise CannotSplit(f"missing {request.etc}/nova.conf: set its directory with --etc")
        self._texts = {path: path.read_text() for path in self.sources}
        self.is_controller = bool(self._common(TRANSPORT)) or any(
            lines.value(self._own(daemon), TRANSPORT) for daemon in request.accounts)
        self._check_mode()
        self._passwords = self._read_passwords()
        self.users = self._broker_users() if request.new_users else []
        self._check_users()

    # -- present state

    def _common(self, name: Name) -> str:
        """Return the last value of an option in the files that all services read."""
        return next((found for path in reversed(self.sources) if (found := lines.value(self._texts[path], name))), "")

    def _check_mode(self) -> None:
        """Raise CannotSplit in upstream mode, in which hosts and the control plane share one URL, whose password
        authenticates them."""
        conductors = self._own(readers.CONDUCTOR)
        is_bounded = any(self._common(name) or lines.value(conductors, name) for name in BOUNDED_OPTIONS)
        if self.is_controller and not is_bounded:
            raise CannotSplit("this cloud is in upstream mode, in which all services and hosts share "
                              "[DEFAULT]transport_url. Move it to bounded mode first: see 'Security modes' in "
                              "doc/security.rst")

    def path_of(self, daemon: str) -> Path:
        """Return the path of the service's own file."""
        return self.request.etc / f"{daemon}.conf"

    def _own(self, daemon: str) -> str:
        path = self.path_of(daemon)
        return path.read_text() if path.exists() else ""

    def unread(self) -> list[Name]:
        """Return the secrets in nova.conf that no service on this machine reads."""
        read = {name for daemon in self.request.accounts for name in readers.secrets_of(daemon)}
        return sorted(name for name in self._secret_names() if name not in read)

    def _secret_names(self) -> frozenset[Name]:
        found = frozenset(name for text in self._texts.values() for name in lines.names(text))
        return frozenset(name for name in found if name in readers.READERS)

    # -- broker users

    @property
    def passwords_path(self) -> Path:
        """Path of the file with the passwords, for the next run or for other controllers."""
        return self.request.passwords or self.request.etc / PASSWORDS

    def _read_passwords(self) -> dict[str, str]:
        if not self.passwords_path.exists():
            return {}
        with failures.replaced(ValueError, lambda _: CannotSplit(
                f"{self.passwords_path} was not written by this command: remove it")):
            found: dict[str, str] = json.loads(self.passwords_path.read_text())
        return found

    def _broker_users(self) -> list[BrokerUser]:
        return [user for daemon in self.request.accounts if (user := self._broker_user(daemon)) is not None]

    def _broker_user(self, daemon: str) -> BrokerUser | None:
        """Return the broker user of a service, with the password from its file, from an earlier run, or a new one."""
        urls = {name: lines.value(self._own(daemon), name) or self._common(name) for name in _urls_of(daemon)}
        vhosts = tuple(broker.vhost_in(url) for url in urls.values() if url)
        if daemon not in readers.CONTROL or not vhosts or any("$" in url for url in urls.values()):
            return None
        own = dict(broker.user_in(url) for url in urls.values()).get(daemon)
        return BrokerUser(daemon, own or self._passwords.get(daemon) or secrets.token_urlsafe(32), vhosts)

    def _check_users(self) -> None:
        """Raise CannotSplit if a user exists whose password is unknown here: another controller's service uses it."""
        strangers = [user.name for user in self.users if self._known and user.name in self._known
                     and not self._knows(user)]
        if strangers:
            raise CannotSplit(f"the broker already has the users {', '.join(strangers)}, for the services of another "
                              "controller. Run the command there with --passwords FILE, copy that file to this "
                              "machine, and use the same option here")

    def _knows(self, user: BrokerUser) -> bool:
        has_own = broker.user_in(lines.value(self._own(user.name), TRANSPORT)) == (user.name, user.password)
        return has_own or user.name in self._passwords

    # -- the steps

    def steps(self) -> Iterator[SplitStep]:
        """Yield the steps in their order; nothing if there is nothing to do."""
        yield from self._password_steps()
        if self._known is not None:
            for user in self.users:
                yield SplitStep(f"broker: the user {user.name}, with permissions in {', '.join(user.vhosts)}",
                           lambda user=user: self._make(user))  # type: ignore[misc]
        for daemon, account in self.request.accounts.items():
            yield from self._file_steps(daemon, account)
        for path in reversed(self.sources):
            yield from self._removal_steps(path)
        if self.request.passwords is None and (self.passwords_path.exists() or self._new_passwords()):
            yield SplitStep(f"{self.passwords_path}: removed", lambda: self.passwords_path.unlink(missing_ok=True))

    def _new_passwords(self) -> dict[str, str]:
        """Return the passwords of users that are in no file yet."""
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
        """Return the service's new file, and the options added to it. Options that it has are kept."""
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
        """Return the text with the service's own user in its URLs, and the changed options."""
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
    """Return the URL options in which the service has its own user. In the vhost of hosts, users are named after the
    hosts."""
    return (TRANSPORT, HOSTS_TRANSPORT) if daemon == readers.CONDUCTOR else (TRANSPORT,)


def shown(name: Name) -> str:
    """Return an option's name as messages show it."""
    return f"[{name[0]}]{name[1]}"


def write(path: Path, text: str, mode: int, account: Account | None) -> None:
    """Write a file atomically, also in case of a power failure, without making it readable by others meanwhile."""
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
    """Yield commands to run where rabbitmqctl can run: they read passwords from the files, not the command line."""
    for user in users:
        pattern = rf"s|^transport_url *= *rabbit://{user.name}:\([^@]*\)@.*|\1|p"
        yield f"sed -n '{pattern}' {path_of(user.name)} | {broker.shown(['add_user', user.name])}"
        yield from (broker.shown(words) for words in user.rights())

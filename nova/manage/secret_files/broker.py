"""Broker users of control plane services: their URLs, their passwords, and their creation at the broker."""

from __future__ import annotations

import json
import re
import shlex
import urllib.parse
from collections.abc import Sequence
from typing import NamedTuple

from nova import errors
from nova.privileged.runner import CommandRunner
from nova.rpc import control_rights

RABBITMQCTL = ("rabbitmqctl", "--quiet")
_PLACE = re.compile(r"^(?P<scheme>[^:/]+://)(?P<places>[^/]*)(?P<rest>.*)$", re.S)


def with_user(url: str, user: str, password: str) -> str:
    """Return the URL with this user for each of its hosts; the vhost and the rest are unchanged."""
    parts = _PLACE.match(url)
    if parts is None:
        return url
    places = ",".join(f"{user}:{password}@{place.rpartition('@')[2]}" for place in parts["places"].split(","))
    return f"{parts['scheme']}{places}{parts['rest']}"


def user_in(url: str) -> tuple[str, str]:
    """Return the user and password of a URL's first host; empty if it has none."""
    parts = _PLACE.match(url)
    standing = parts["places"].split(",")[0].rpartition("@")[0] if parts else ""
    user, _, password = standing.partition(":")
    return urllib.parse.unquote(user), urllib.parse.unquote(password)


def vhost_in(url: str) -> str:
    """Return the vhost of a URL."""
    parts = _PLACE.match(url)
    path = parts["rest"].partition("?")[0] if parts else ""
    return urllib.parse.unquote(path[1:]) or "/"


class BrokerUser(NamedTuple):
    """A broker user of a service, and the vhosts in which it has permissions."""

    name: str
    password: str
    vhosts: tuple[str, ...]

    def rights(self) -> list[list[str]]:
        """Return the arguments of the commands that set its permissions: topic restrictions come before grants."""
        return [words for vhost in self.vhosts for words in rights_commands(self.name, vhost)]


def rights_commands(user: str, vhost: str) -> list[list[str]]:
    """Return the arguments of the commands that set permissions of a service's user in one vhost, and its limits."""
    patterns, topics = control_rights.permissions(user), control_rights.topic_rights(user)
    made = [["set_topic_permissions", "-p", vhost, user, topics.exchange, topics.write, topics.read]] if topics else []
    made.append(["set_permissions", "-p", vhost, user, *(patterns[verb] for verb in ("configure", "write", "read"))])
    if user in control_rights.LIMITED:
        made.append(["set_user_limits", user, json.dumps(control_rights.LIMITS)])
    return made


def shown(words: Sequence[str]) -> str:
    """Return a command as an operator types it."""
    return f"rabbitmqctl {shlex.join(words)}"


def existing(runner: CommandRunner) -> frozenset[str] | None:
    """Return the broker's users; None if rabbitmqctl cannot run here."""
    try:
        listed = runner.run([*RABBITMQCTL, "list_users"]).stdout
    except errors.NovaError:
        return None
    return frozenset(line.split("\t")[0] for line in listed.splitlines())


def make(user: BrokerUser, known: frozenset[str], runner: CommandRunner) -> None:
    """Create the user, or change its password, and set its permissions. The password is on no command line. Raises
    host.CommandFailed."""
    verb = "change_password" if user.name in known else "add_user"
    runner.run([*RABBITMQCTL, verb, user.name], stdin=f"{user.password}\n")
    for words in user.rights():
        runner.run([*RABBITMQCTL, *words])

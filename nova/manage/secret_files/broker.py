"""Broker users of control daemons: their names in URLs, their passwords, and what makes them at the broker."""

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
    """The URL with this user at each of its places; the vhost and all else stay."""
    parts = _PLACE.match(url)
    if parts is None:
        return url
    places = ",".join(f"{user}:{password}@{place.rpartition('@')[2]}" for place in parts["places"].split(","))
    return f"{parts['scheme']}{places}{parts['rest']}"


def user_in(url: str) -> tuple[str, str]:
    """User and password of a URL's first place; empty: it has none."""
    parts = _PLACE.match(url)
    standing = parts["places"].split(",")[0].rpartition("@")[0] if parts else ""
    user, _, password = standing.partition(":")
    return urllib.parse.unquote(user), urllib.parse.unquote(password)


def vhost_in(url: str) -> str:
    """The vhost that it names."""
    parts = _PLACE.match(url)
    path = parts["rest"].partition("?")[0] if parts else ""
    return urllib.parse.unquote(path[1:]) or "/"


class BrokerUser(NamedTuple):
    """A user that a daemon needs, and the vhosts where it has its rights."""

    name: str
    password: str
    vhosts: tuple[str, ...]

    def rights(self) -> list[list[str]]:
        """Words of the commands that give it its rights: what it may not hear comes before what it may."""
        return [words for vhost in self.vhosts for words in rights_commands(self.name, vhost)]


def rights_commands(user: str, vhost: str) -> list[list[str]]:
    """Words of the commands that give a daemon's user its rights in one vhost, and its limits."""
    patterns, topics = control_rights.permissions(user), control_rights.topic_rights(user)
    made = [["set_topic_permissions", "-p", vhost, user, topics.exchange, topics.write, topics.read]] if topics else []
    made.append(["set_permissions", "-p", vhost, user, *(patterns[verb] for verb in ("configure", "write", "read"))])
    if user in control_rights.LIMITED:
        made.append(["set_user_limits", user, json.dumps(control_rights.LIMITS)])
    return made


def shown(words: Sequence[str]) -> str:
    """A command as an operator types it."""
    return f"rabbitmqctl {shlex.join(words)}"


def existing(runner: CommandRunner) -> frozenset[str] | None:
    """The broker's users; None: rabbitmqctl cannot be run here."""
    try:
        listed = runner.run([*RABBITMQCTL, "list_users"]).stdout
    except errors.NovaError:
        return None
    return frozenset(line.split("\t")[0] for line in listed.splitlines())


def make(user: BrokerUser, known: frozenset[str], runner: CommandRunner) -> None:
    """Make the user, or give it this password, and its rights. The password is on no command line.
    host.CommandFailed."""
    verb = "change_password" if user.name in known else "add_user"
    runner.run([*RABBITMQCTL, verb, user.name], stdin=f"{user.password}\n")
    for words in user.rights():
        runner.run([*RABBITMQCTL, *words])

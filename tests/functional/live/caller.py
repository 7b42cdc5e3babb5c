"""Makes the calls of the scenarios, judges every answer by the contract, and keeps what was covered.

Problems are collected, not raised: a scenario goes on, and its test shows them all.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import requests

from nova.api import legacy_networks
from nova.legacy.api_extras import EXTRAS
from tests.contract import rows
from tests.functional.live import normal, scope

LEGACY = 0  # as a version: the paths under /v2
ADMIN, MEMBER = "admin", "fake"
PROJECT = "6f70656e737461636b20342065766572"  # the samples'
OTHER = "00000000000000000000000000000abc"  # a project of others
FAULTS = {400: "badRequest", 403: "forbidden", 404: "itemNotFound", 409: "conflictingRequest", 413: "overLimit",
          415: "badMediaType", 501: "notImplemented", 503: "serviceUnavailable"}
Path = str | Callable[[int], str]
#: Gone from the contract, and served where nova-network is.
OLD = {row.id: row for row in (*legacy_networks.ROUTES, *EXTRAS.networks)}


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    headers: Any
    operation: str = ""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


@functools.cache
def templates() -> list[tuple[str, re.Pattern[str], str]]:
    """(method, path's pattern, operation's id); the most literal paths first."""
    found = []
    for id, entry in rows.operations().items():
        path = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(entry["path"]))
        found.append((entry["path"].count("{"), entry["method"], re.compile(f"{path}/?"), id))
    return [entry[1:] for entry in sorted(found, key=lambda entry: entry[0])]


def operation_of(method: str, path: str, body: Any, version: int) -> str:
    """The id of the contract's operation that a request is for; empty when there is none at that version."""
    plain = path.partition("?")[0]
    action = next(iter(body), None) if isinstance(body, dict) and plain.endswith("/action") else None
    for its_method, pattern, id in templates():
        if its_method == method and pattern.fullmatch(plain) and (id.partition("#")[2] or None) == action \
                and version in span(id):
            return id
    return ""


def span(id: str) -> range:
    """The versions an operation has, ``LEGACY`` with the first."""
    if id in OLD:
        return range(LEGACY, rows.minor(OLD[id].until, 104) + 1)
    entry = rows.operations()[id]
    first = rows.minor(entry.get("min_version"), 1)
    return range(LEGACY if first == 1 else first, rows.minor(entry.get("max_version"), 104) + 1)


def turning_points(id: str) -> list[int]:
    """The versions at which an operation is called: the first, the last, each change and the one before, and /v2."""
    versions = span(id)
    changes = [rows.minor(text, 1) for text in rows.operations()[id].get("changes", {})]
    wanted = {versions[0], max(versions[0], 1), versions[-1], *changes, *(change - 1 for change in changes)}
    return sorted(version for version in wanted if version in versions)


@functools.cache
def published() -> dict[str, dict[str, dict[int, str]]]:
    """folder -> name without suffix -> version -> sample's path."""
    found: dict[str, dict[str, dict[int, str]]] = {}
    for file in sorted((rows.SHARED / "samples").rglob("*.json")):
        name = str(file.relative_to(rows.SHARED / "samples"))
        stems = found.setdefault(name.partition("/")[0], {})
        stems.setdefault(file.stem, {})[rows.sample_version(name)] = name
    return found


def content(sample: str) -> Any:
    return copy.deepcopy(_content(sample))


@functools.cache
def _content(sample: str) -> Any:
    return json.loads((rows.SHARED / "samples" / sample).read_text())


class Live:
    """The callers of one live API, and what they saw."""

    def __init__(self, url: str) -> None:
        self.url = url.rsplit("/", 1)[0]
        self.session = requests.Session()
        self.problems: list[str] = []
        self.covered: dict[str, set[int]] = collections.defaultdict(set)  # operation -> versions that succeeded
        self.provoked: dict[str, set[int]] = collections.defaultdict(set)  # operation -> error codes
        self.matched: set[str] = set()
        self.tried: set[str] = set()
        self.partly: set[str] = set()  # samples with a part that waits for a later issue

    # -- calls

    def call(self, method: str, path: str, body: Any = None, version: int = 104, user: str = ADMIN, *,
             expect: int | tuple[int, ...] = (), project: str = PROJECT) -> Answer:
        """The answer; judged. ``expect``: codes it must have; without them, success is expected.

        As in the samples, the project stands in the path; not under /v2, so that both ways are tried.
        """
        prefix = "/v2" if version == LEGACY else "/v2.1"
        if version != LEGACY and path != "/" and not path.startswith("/versions/"):
            prefix += f"/{project}"
        headers = {"X-Auth-Token": f"{user}:{project}", "OpenStack-API-Version": f"compute 2.{version}"}
        raw = self.session.request(method, f"{self.url}{prefix}{path}", json=body, headers=headers, timeout=90)
        try:
            found = raw.json() if raw.content else None
        except ValueError:
            found = raw.text
        answer = Answer(raw.status_code, found, raw.headers, operation_of(method, path, body, version))
        sent = f" {normal.short(body, 160)}" if body is not None else ""
        where = f"{method} {path}{sent} at {shown(version)} as {user}"
        codes = (expect,) if isinstance(expect, int) else expect
        if codes and answer.status not in codes:
            self.problem(where, f"expected {' or '.join(map(str, codes))}, got {described(answer)}")
        elif not codes and not answer.ok:
            self.problem(where, f"expected success, got {described(answer)}")
        else:
            self.judge(where, answer, version)
        return answer

    def get(self, path: str, version: int = 104, user: str = ADMIN, **more: Any) -> Any:
        return self.call("GET", path, None, version, user, **more).body

    def problem(self, where: str, what: str) -> None:
        self.problems.append(f"{where}: {what}")

    # -- judging

    def judge(self, where: str, answer: Answer, version: int) -> None:
        self._judge_headers(where, answer, version)
        entry = rows.operations().get(answer.operation)
        if entry is None:
            return
        at = max(version, 1)
        if answer.ok:
            codes = {OLD[answer.operation].code} if answer.operation in OLD else {
                code["code"] for code in entry["success"] if rows.holds(code, at)}
            if answer.status not in codes:
                self.problem(where, f"expected code {sorted(codes)}, got {answer.status}")
            for problem in _misshapen(answer, at):
                if not any(re.search(pattern, problem) for pattern in scope.SLIPS.get(answer.operation, ())):
                    self.problem(where, problem)
            self.covered[answer.operation].add(version)
        else:
            if scope.refused(answer.operation, version) == answer.status:
                self.covered[answer.operation].add(version)
            self.provoked[answer.operation].add(answer.status)
            listed = {*entry.get("errors", ()), *entry.get("errors_declared", ())}
            if answer.status not in listed and entry["status"] != "gone":
                self.problem(where, f"code {answer.status} is none of its errors {sorted(listed)}")
            self._judge_fault(where, answer)

    def _judge_headers(self, where: str, answer: Answer, version: int) -> None:
        wanted = {"OpenStack-API-Version": f"compute 2.{version}", "X-OpenStack-Nova-API-Version": f"2.{version}"}
        for name, value in wanted.items():
            got = answer.headers.get(name)
            if got != (None if version == LEGACY else value):
                self.problem(where, f"header {name}: expected {value}, got {got}")
        vary = {word.strip() for word in answer.headers.get("Vary", "").split(",")}
        if version != LEGACY and not {*wanted} <= vary:
            self.problem(where, f"header Vary: expected {sorted(wanted)}, got {sorted(vary)}")
        for name in ("x-openstack-request-id", "x-compute-request-id"):
            if not re.fullmatch(r"req-[0-9a-f-]{36}", answer.headers.get(name, "")):
                self.problem(where, f"header {name}: got {answer.headers.get(name)}")
        json_type = "application/json" if answer.ok else "application/json; charset=UTF-8"
        if answer.body is not None and answer.headers.get("Content-Type") != json_type:
            self.problem(where, f"header Content-Type: expected {json_type}, got {answer.headers.get('Content-Type')}")

    def _judge_fault(self, where: str, answer: Answer) -> None:
        name = FAULTS.get(answer.status, "computeFault")
        fault = answer.body.get(name) if isinstance(answer.body, dict) else None
        if not isinstance(fault, dict) or fault.get("code") != answer.status or not fault.get("message"):
            self.problem(where, f"expected a fault {name}, got {normal.short(answer.body)}")

    # -- samples

    def shows(self, folder: str, stem: str, path: Path, users: tuple[str, ...] = (ADMIN, MEMBER),
              versions: range = range(1, 105)) -> None:
        """A GET answers like each version of a sample. Samples do not say who asks: one of ``users`` sees it so."""
        for version, sample in samples(folder, stem, versions):
            self._first_like(sample, version, lambda user, version=version: self.call(
                "GET", path if isinstance(path, str) else path(version), None, version, user), users)

    def _first_like(self, sample: str, version: int, ask: Callable[[str], Answer], users: tuple[str, ...]) -> None:
        wrong: list[list[str]] = []
        before = len(self.problems)
        for user in users:
            answer = ask(user)
            found = [f"sample {sample}: {answer.operation or 'no operation'} at {shown(version)} as {user}: {text}"
                     for text in self.unlike(sample, answer)]
            found += self.problems[before:] if answer.ok or not found else []
            del self.problems[before:]
            if not found:
                self.matched.add(sample)
                return
            wrong.append(found)
        self.problems += min(wrong, key=lambda found: (": got " in found[0], len(found)))

    def unlike(self, sample: str, answer: Answer) -> list[str]:
        """How an answer differs from a sample."""
        self.tried.add(sample)
        if not answer.ok:
            return [f"got {described(answer)}"]
        listed = [id for id, entry in rows.operations().items() if sample in entry.get("samples", [])]
        if listed and answer.operation not in listed:
            return [f"is of {listed}, called was {answer.operation}"]
        found = normal.differences(content(sample), answer.body)
        if any(excused(text) for text in found):
            self.partly.add(sample)
        return [text for text in found if not excused(text)]

    def like(self, sample: str, answer: Answer, version: int) -> None:
        """Hold an answer against a sample."""
        self._first_like(sample, version, lambda user: answer, (ADMIN,))

    def sent(self, sample: str, answer: Answer) -> None:
        """A request made of a sample was taken."""
        self.tried.add(sample)
        if answer.ok:
            self.matched.add(sample)


def _misshapen(answer: Answer, version: int) -> list[str]:
    """What in it is not as the contract's rows say; of what is gone there are none, its samples judge it."""
    if answer.operation in OLD:
        return []
    return rows.judge(rows.shapes(answer.operation).get("response", []), answer.body, version)


def samples(folder: str, stem: str, versions: range = range(1, 105)) -> Iterator[tuple[int, str]]:
    """(version, name) of each version of a sample that there is."""
    for version, name in published().get(folder, {}).get(stem, {}).items():
        if version in versions:
            yield version, name


def excused(difference: str) -> bool:
    path = difference.split(": ")[0]
    return difference.endswith(("got an empty list", "got null (None)")) and any(
        path.endswith(end) for end, _ in scope.EMPTY_UNTIL)


def shown(version: int) -> str:
    return "/v2" if version == LEGACY else f"2.{version}"


def described(answer: Answer) -> str:
    return f"{answer.status} {str(answer.body)[:200]}"

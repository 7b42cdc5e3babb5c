"""How scenarios are written: ``@scenario`` functions that get the world, and exchanges made of request samples."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.functional.live.caller import ADMIN, Answer, Live, Path, content, published, shown, turning_points

if TYPE_CHECKING:
    from tests.functional.live.world import World

Scenario = Callable[["World"], None]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """One test of the live contract: a function that acts on the world; what it finds is in ``world.live``."""
    SCENARIOS[f"{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}"] = function
    return function


@dataclasses.dataclass(frozen=True, kw_only=True)
class Exchange:
    """A request of an operation at each of its turning points, and at each version of its samples.

    ``fill`` replaces the sample's example values (the nearest older sample stands in where a version has none);
    ``body`` is sent where there are no samples; ``done`` puts back what the request changed.
    """

    operation: str
    path: Path
    folder: str = ""
    request: str = ""
    answer: str = ""
    body: Callable[[int], Any] | None = None
    fill: Callable[[Any, int], Any] = lambda body, version: body
    done: Callable[[Answer, int], None] = lambda answer, version: None
    user: str = ADMIN
    versions: range = range(105)

    def run(self, live: Live) -> None:
        requests = published().get(self.folder, {}).get(self.request, {})
        answers = published().get(self.folder, {}).get(self.answer, {})
        for version in sorted({*turning_points(self.operation), *requests, *answers}):
            if version in self.versions:
                self._once(live, version, requests, answers)

    def _once(self, live: Live, version: int, requests: dict[int, str], answers: dict[int, str]) -> None:
        body = self.body(version) if self.body else self.fill(content(nearest(requests, version)), version) \
            if requests else None
        path = self.path if isinstance(self.path, str) else self.path(version)
        answer = live.call(self.operation.split()[0], path, body, version, self.user)
        if answer.operation != self.operation:
            live.problem(f"{path} at {shown(version)}", f"is {answer.operation}, not {self.operation}")
        if version in requests and not self.body:
            live.sent(requests[version], answer)
        if version in answers:
            live.like(answers[version], answer, version)
        if answer.ok:
            self.done(answer, version)


def nearest(versions: dict[int, str], version: int) -> str:
    """The sample of the newest version not above one; the oldest of all where there is none."""
    older = [number for number in versions if number <= version]
    return versions[max(older) if older else min(versions)]


def each(live: Live, operation: str, path: Path, body: Callable[[int], Any] | None = None,
         done: Callable[[Answer, int], None] = lambda answer, version: None, user: str = ADMIN) -> None:
    """An operation without samples at its turning points."""
    Exchange(operation=operation, path=path, body=body or (lambda version: None), done=done, user=user).run(live)

"""Findability: who types a newcomer's words into grep finds the file with the answer among the first three.

``tests/findability.yaml`` holds the questions. A file's rank is by the number of the words that it has, then by a word
in its path, then by how often it has them for its length. The test reads ``nova`` alone, as ``grep -ri`` there would.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

import pytest
import yaml

from tests import prose

QUESTIONS = yaml.safe_load((prose.TOP / "tests" / "findability.yaml").read_text())
FIRST = 3


@functools.cache
def texts() -> Mapping[str, str]:
    return {str(path.relative_to(prose.TOP)): path.read_text().lower()
            for path in sorted((prose.TOP / "nova").rglob("*.py")) if path.stat().st_size}


def found(words: Sequence[str], read: Mapping[str, str]) -> list[str]:
    """The files that have the words, best first."""
    patterns = [re.compile(rf"(?<![a-z]){re.escape(word.lower())}") for word in words]

    def rank(name: str) -> tuple[int, int, float]:
        counts = [len(pattern.findall(read[name])) for pattern in patterns]
        in_path = sum(bool(pattern.search(name)) for pattern in patterns)
        return (-sum(map(bool, counts)), -in_path, -sum(counts) / len(read[name]))
    return sorted((name for name in read if any(pattern.search(read[name]) for pattern in patterns)), key=rank)


def test_questions_then_there_are_forty_of_their_own() -> None:
    assert len(QUESTIONS) == 40 == len({one["question"] for one in QUESTIONS})
    assert all(len(one["words"]) <= 3 for one in QUESTIONS)


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked["question"])
def test_question_when_its_words_are_typed_then_the_file_is_among_the_first(asked: Mapping[str, object]) -> None:
    words, file = asked["words"], asked["file"]
    assert isinstance(words, list) and file in texts()
    assert file in (first := found(words, texts())[:FIRST]), f"grep {' '.join(words)} finds {first}"


@pytest.mark.parametrize(("words", "first"), [
    (["orphan"], "b/orphans.py"), (["orphan", "guest"], "a/guests.py"), (["orphans", "host"], "b/orphans.py")])
def test_found_when_several_files_have_words_then_most_words_then_the_path_then_density_decide(
        words: list[str], first: str) -> None:
    read = {"a/guests.py": "an orphan guest, a guest, and hosts", "b/orphans.py": "orphans of an orphan host " * 3,
            "c/other.py": "guest guest guest"}
    assert found(words, read)[0] == first
    assert found(["nothing"], read) == []

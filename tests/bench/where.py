"""Where a daemon's time goes: py-spy's samples of its threads, put under words.

Each sample is a stack; the innermost frame of it that a word stands for decides. Waiting is not sampled.
"""

from __future__ import annotations

import collections
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

#: A word, and the parts of paths (or names of functions) it stands for; looked for from the innermost frame outwards.
WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("SQL", ("sqlalchemy/", "pymysql/", "psycopg", "nova/db/")),
    ("RPC", ("oslo_messaging/", "kombu/", "amqp/", "nova/rpc/")),
    ("policy", ("oslo_policy/", "nova/policies/")),
    ("auth", ("keystonemiddleware/", "keystoneauth1/", "nova/web/auth", "nova/web/keystone", "nova/context")),
    ("router", ("nova/api/routing", "nova/web/routing", "nova/api/versions", "/routes/")),
    ("schema", ("nova/api/schemas/", "nova/web/schema", "nova/web/specs", "nova/web/judging", "nova/web/formats")),
    ("view", ("nova/api/view", "nova/api/handlers/")),
    ("middleware", ("nova/web/", "nova/api/dispatch", "nova/api/request", "nova/api/app", "webob/")),
    ("logging", ("logging/", "nova/logs")),
    ("HTTP", ("nova/wsgi", "http/")),
    ("conductor", ("nova/conductor/", "nova/model/")),
    ("threads", ("nova/concurrency", "eventlet/", "greenlet", "threading", "futurist", "concurrent/")),
)


def word_of(stack: Sequence[str]) -> str:
    """The word for a stack, outermost frame first."""
    for frame in reversed(stack):
        for word, marks in WORDS:
            if any(mark in frame for mark in marks):
                return word
    return "other"


def shares(text: str) -> dict[str, float]:
    """Word -> share of the samples, the biggest first. ``text``: py-spy's raw form."""
    counts: collections.Counter[str] = collections.Counter()
    for stack, count in folded(text):
        counts[word_of(stack)] += count
    total = sum(counts.values()) or 1
    return {word: count / total for word, count in counts.most_common()}


def folded(text: str) -> Iterator[tuple[list[str], int]]:
    """Yield (stack, samples) of py-spy's raw form: ``frame;frame count`` a line, the outermost frame first."""
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        if count.isdigit():
            yield stack.split(";"), int(count)


class Sampling:
    """Samples a process and its children for some seconds, beside whatever else is done.

        sampling = Sampling(pid, 5)
        ...
        sampling.shares()

    ``kind``: "raw", or "flamegraph" for a picture at ``out``.
    """

    def __init__(self, pid: int, seconds: int, rate: int = 200, kind: str = "raw", out: Path | None = None) -> None:
        spy = Path(sys.executable).with_name("py-spy")
        program = str(spy) if spy.exists() else shutil.which("py-spy")
        if program is None:
            raise FileNotFoundError("py-spy is not installed: bin/test bench installs it")
        self._out = out or Path(tempfile.mkstemp(prefix="nova-where-")[1])
        self._process = subprocess.Popen(
            [program, "record", "--pid", str(pid), "--subprocesses", "--duration", str(seconds), "--rate", str(rate),
             "--format", kind, "--full-filenames", "--gil", "--output", str(self._out), "--nonblocking"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def shares(self) -> dict[str, float]:
        return shares(self.text())

    def text(self) -> str:
        """Return what py-spy wrote, once it has ended; the file is removed."""
        try:
            self.wait()
            return self._out.read_text()
        finally:
            self._out.unlink(missing_ok=True)

    def wait(self) -> None:
        self._process.wait(60)


def in_words(found: dict[str, float], least: float = 0.03) -> str:
    """``SQL 41 %, RPC 22 %, ...``; what is below ``least`` is left out."""
    return ", ".join(f"{word} {share:.0%}" for word, share in found.items() if share >= least)

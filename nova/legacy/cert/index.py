"""``index.txt``: what an authority signed and revoked, a line each, as ``openssl ca`` reads and writes it.

Six fields with tabs between them: V, R or E (valid, revoked, expired); its end; when it was revoked, and perhaps why;
its number in hexadecimal; a file, which is always ``unknown``; its subject.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

VALID, REVOKED, EXPIRED = "V", "R", "E"
CENTURY = 2050  # from which year on a time has four digits of it (RFC 5280, 4.1.2.5)


class IndexEntry(NamedTuple):
    """One line. ``ends``, ``revoked``: as :func:`stamp` makes them; ``revoked`` is empty but for status R."""

    status: str
    ends: str
    revoked: str
    serial: int
    subject: str

    @property
    def revoked_at(self) -> datetime.datetime:
        """With the zone UTC. A reason behind it is not looked at."""
        return moment(self.revoked.partition(",")[0])

    @property
    def line(self) -> str:
        """As the file has it."""
        return "\t".join((self.status, self.ends, self.revoked, f"{self.serial:02X}", "unknown", self.subject)) + "\n"


def stamp(when: datetime.datetime) -> str:
    """``20260101120000Z``, or without the century before 2050."""
    return f"{when:%Y%m%d%H%M%SZ}" if when.year >= CENTURY else f"{when:%y%m%d%H%M%SZ}"


def moment(text: str) -> datetime.datetime:
    """The time of a :func:`stamp`, with the zone UTC. ValueError: it is none."""
    full = text if len(text) == len("YYYYMMDDHHMMSSZ") else f"{'19' if text[:2] >= '50' else '20'}{text}"
    return datetime.datetime.strptime(full, "%Y%m%d%H%M%SZ").replace(tzinfo=datetime.UTC)


def read(text: str) -> dict[int, IndexEntry]:
    """By number. ValueError names the line that is damaged."""
    found: dict[int, IndexEntry] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            status, ends, revoked, serial, _file, subject = line.split("\t")
            entry = IndexEntry(status, ends, revoked, int(serial, 16), subject)
            if status not in (VALID, REVOKED, EXPIRED) or (status == REVOKED) != bool(revoked):
                raise ValueError
            if revoked:
                _ = entry.revoked_at
        except ValueError:
            raise ValueError(f"line {number} is damaged") from None
        found[entry.serial] = entry
    return found


def written(entries: dict[int, IndexEntry]) -> str:
    """The file's text."""
    return "".join(entry.line for entry in entries.values())

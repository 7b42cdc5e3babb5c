"""The file ``index.txt``: an authority's issued and revoked certificates, in the format of ``openssl ca``.

Each line has six fields separated by tabs: V, R or E (valid, revoked, expired); the expiry; the time and optional
reason of the revocation; the serial number in hexadecimal; a file, always ``unknown``; the subject.
"""

from __future__ import annotations

import datetime
from typing import NamedTuple

VALID, REVOKED, EXPIRED = "V", "R", "E"
CENTURY = 2050  # from this year on, times have a year of four digits (RFC 5280, 4.1.2.5)


class IndexEntry(NamedTuple):
    """A line of ``index.txt``. ``ends``, ``revoked``: times in the format of :func:`stamp`; ``revoked`` is empty except
    for status R."""

    status: str
    ends: str
    revoked: str
    serial: int
    subject: str

    @property
    def revoked_at(self) -> datetime.datetime:
        """The time of revocation, in UTC. The reason after it is ignored."""
        return moment(self.revoked.partition(",")[0])

    @property
    def line(self) -> str:
        """The line as in the file."""
        return "\t".join((self.status, self.ends, self.revoked, f"{self.serial:02X}", "unknown", self.subject)) + "\n"


def stamp(when: datetime.datetime) -> str:
    """Format a time as ``20260101120000Z``; before 2050 without the century."""
    return f"{when:%Y%m%d%H%M%SZ}" if when.year >= CENTURY else f"{when:%y%m%d%H%M%SZ}"


def moment(text: str) -> datetime.datetime:
    """Parse the format of :func:`stamp`, as UTC. Raises ValueError."""
    full = text if len(text) == len("YYYYMMDDHHMMSSZ") else f"{'19' if text[:2] >= '50' else '20'}{text}"
    return datetime.datetime.strptime(full, "%Y%m%d%H%M%SZ").replace(tzinfo=datetime.UTC)


def read(text: str) -> dict[int, IndexEntry]:
    """Parse the file; map serial numbers to entries. Raises ValueError with the number of a damaged line."""
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
    """Return the text of the file."""
    return "".join(entry.line for entry in entries.values())

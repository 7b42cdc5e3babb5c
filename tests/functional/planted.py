"""Secrets that every server of these tests is made with, and the look for them and the cloud's own in all logs."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PASSWORD, USER_DATA, FILE = "Pl4nted-password-7c1e", "planted user data 7c1e", "planted file 7c1e"
REBUILT, RESCUED, CHANGED = "Pl4nted-rebuilt-7c1e", "Pl4nted-rescued-7c1e", "Pl4nted-changed-7c1e"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


#: What a server is created with where a test does not say otherwise.
FIELDS: dict[str, Any] = {"adminPass": PASSWORD, "user_data": encoded(USER_DATA)}
WORDS = (PASSWORD, USER_DATA, FILE, REBUILT, RESCUED, CHANGED, encoded(USER_DATA), encoded(FILE))


def of_cloud(broker_url: str, database_urls: Mapping[str, str], root: Path) -> set[str]:
    """Passwords of its backends, and what proves its hosts."""
    found = {urlsplit(url).password or "" for url in (broker_url, *database_urls.values())}
    found |= {path.read_text().strip() for path in (root / "state").glob("*/host_secret")}
    return {one for one in found if len(one) > 6}  # a shorter one is in every text


def seen_in(logs: Path, secrets: set[str]) -> list[str]:
    """Lines of logs that have one of the words, or of these; each told without it."""
    wanted = re.compile("|".join(re.escape(one) for one in sorted({*WORDS, *secrets})))
    return [f"{path.name}: {wanted.sub('*SECRET*', line)[:300]}" for path in sorted(logs.glob("*.log"))
            for line in path.read_text(errors="replace").splitlines() if wanted.search(line)]

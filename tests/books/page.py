"""The blocks of a page, in order: which machine each is for, and whether it is run there or is a file's content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import docutils.core
import docutils.nodes

#: How a paragraph before a block begins or ends -> for whom the block is.
PLACES = {"On controller1 and controller2": "controllers", "On controller2 and controller3": "joining",
          "On each control machine": "control", "On controller1": "first",
          "On the controller": "controller", "on the controller": "controller", "On each compute host": "compute",
          "On every machine": "every", "on every machine": "every"}
_FILE = re.compile(r"the file (/\S+)$")
#: Words that a reader replaces.
WORD = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]*(?:PASSWORD|ADDRESS|TOKEN|KEY|NETWORK)\b|\b(?:TICKET|NOVA)_[A-Z]+\b")


class Block(NamedTuple):
    """``machines``: a value of PLACES. ``file``: whose content it is; empty: commands."""

    section: str
    machines: str
    file: str
    text: str


def blocks(path: Path, first: str, last: str) -> list[Block]:
    """Those of the sections from ``first`` to ``last`` that are for a machine; others are examples."""
    tree = docutils.core.publish_doctree(path.read_text(), settings_overrides={"report_level": 5})
    found = list(_placed(tree))
    sections = list(dict.fromkeys(block.section for block in found))
    wanted = sections[sections.index(first):sections.index(last) + 1]
    return [block for block in found if block.section in wanted]


def _placed(tree: docutils.nodes.document) -> Iterator[Block]:
    for node in tree.findall(docutils.nodes.literal_block):
        above = node.parent[node.parent.index(node) - 1]
        if not isinstance(above, docutils.nodes.paragraph):
            continue
        said = " ".join(above.astext().rstrip(":").split())
        place = next((found for words, found in PLACES.items() if words in said and (
            said.startswith(words) or said.endswith(words))), "")
        if place:
            name = _FILE.search(said)
            title = node.parent.next_node(docutils.nodes.title)
            yield Block(title.astext(), place, name[1] if name else "", node.astext())


def replaced(text: str, words: dict[str, str]) -> str:
    """The text with the reader's own words. KeyError: the page has one that nobody told the reader of."""
    return WORD.sub(lambda found: words[found[0]], text)

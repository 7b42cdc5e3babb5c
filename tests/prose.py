"""Check of the documents' prose: too long sentences, and phrases that are difficult for non-native readers.

    python -m tests.prose [PAGE ...]     print the faults of each page; exit status 1 if there is one

It reads only prose: paragraphs, items of lists and cells of tables. It does not read code; a literal is one word.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docutils import frontend, nodes, utils
from docutils.parsers import rst

TOP = Path(__file__).resolve().parent.parent
#: Pages that are written by hand, and pages with texts from tables of ``tests/docs_parts`` and ``nova.manage``.
GENERATED = ("commands", "devices", "errors", "notifications", "options", "rpc", "states")
PAGES = (TOP / "README.rst", *sorted((TOP / "doc").glob("*.rst")),
         *(TOP / "doc" / "generated" / f"{name}.rst" for name in GENERATED))
LONGEST = 30  # words in a sentence
#: phrase, as a regular expression -> replacement, or advice.
IDIOMS = {
    r"comes? along": "is part of nova",
    r"on (its|their) way": "name what is being done",
    r"has a say": "decides, or is asked",
    r"ha(s|ve) no say": "does not decide",
    r"said twice": "you can run it again",
    r"(for|the) want of": "because ... is missing",
    r"where nobody": "if no user, program or host",
    r"(those|the ones?|one|ones|everybody|anybody|nobody|whoever|he|she|they) (who|whose|that)": "name the thing",
    r"who stays": "the server stays",
    r"(is|are|was) to be had": "is available, or can be bought",
    r"and so (do|does|did|is|are|has|have|can|was|were)": "say it again with the name of the thing",
    r"nor (do|does|did|is|are|has|have|can|was|were)": "start a sentence: it does not",
    r"(is|are) let in": "may connect",
    r"(is|are) (the|a|its|their|our) [\w']+ to (say|tell|decide|choose|do)": "the ... decides",
    r"by none of": "cannot",
    r"goes? on \w+ing": "still does, or continues to",
    r"nothing (else )?(but|than)": "only",
    r"in earnest": "in production",
    r"next door": "beside it",
    r"is no more": "is gone, or does not exist",
    r"(do|does|is|are|can|will) not, either": "also not: name the thing",
    r"as it were": "leave it out",
    r"all the same": "anyway",
    r"at hand": "available",
    r"in vain": "without success",
    r"once and for all": "one time",
    r"what is (there|left|more|meant|new|old)": "name the thing",
    r"what comes? (of|next|after|before|meanwhile)": "name the thing",
    r"becomes? of": "happens to",
    r"comes? of": "follows from",
    r"makes? up for": "replaces",
    r"stands? for": "means",
    r"(does|go|goes|come|comes) without": "does not need",
    r"let(s)? go": "release, or close",
    r"gives? up on": "stops, or cancels",
    r"(in|by) words": "name the message",
    r"with a word": "with a message",
    r"no matter": "also if",
    r"be it": "whether",
    r"but for": "except",
    r"all but": "all except, or nearly",
    r"save for": "except",
    r"as to": "about",
    r"if need be": "if necessary",
    r"as good as": "nearly, or the same as",
    r"for good": "for ever, or leave it out",
    r"at (the )?worst": "name the worst case as a sentence",
    r"in no time": "name the seconds",
    r"out of the way": "name what happens",
    r"nobody's": "name it",
    r"somebody's": "name whose",
    r"the former|the latter": "name the thing",
    r"vice versa": "say the other direction",
    r"hence|thus|thereby|therein|thereof|whereby|wherein|whereof": "so, or a new sentence",
    r"lest": "so that ... does not",
    r"albeit|notwithstanding|insofar|inasmuch": "although, or a new sentence",
    r"e\.g\.|i\.e\.|viz\.": "for example, that is",
}
WHOLE = r"(?<![\w-])(?:{})(?![\w-])"  # not a part of a longer word
PATTERNS = tuple((re.compile(WHOLE.format(phrase), re.IGNORECASE), advice) for phrase, advice in IDIOMS.items())
_ANY_IDIOM = re.compile(WHOLE.format("|".join(f"(?:{phrase})" for phrase in IDIOMS)), re.IGNORECASE)
#: A sentence begins with a capital letter, a literal, the name of a program, or an option's value and a colon.
_BEGIN = r"(?=[^a-z ]|[a-z_]+: |(?:nova|libvirtd?|systemd|dnsmasq|ebtables|os-vif|uWSGI|noVNC)\b)"
_END = re.compile(rf"(?<=[.?!]) +{_BEGIN}|(?<=[.?!][\")]) +{_BEGIN}")
_SETTINGS = frontend.get_default_settings(rst.Parser)
_SETTINGS.report_level = 5  # another test checks the reStructuredText
_SETTINGS.file_insertion_enabled = False
_STUCK = "\N{NO-BREAK SPACE}"  # between the words of a literal, which counts as one word and does not end a sentence


class Fault(NamedTuple):
    """A sentence, and advice for its change."""

    sentence: str
    advice: str

    def __str__(self) -> str:
        return f"{self.advice}\n    {self.sentence}"


def faults(text: str) -> Iterator[Fault]:
    """Yield the faults in a page of reStructuredText, in the page's order."""
    for sentence in sentences(text):
        yield from _of_sentence(sentence)


def sentences(text: str) -> Iterator[str]:
    """Yield each sentence of the page's prose, on one line."""
    tree = utils.new_document("page", _SETTINGS)
    rst.Parser().parse(text, tree)
    for paragraph in tree.findall(nodes.paragraph):
        words = "".join(_words(paragraph))
        yield from filter(None, _END.split(re.sub(r"[ \n]+", " ", words).strip()))


def _words(node: nodes.Node) -> Iterator[str]:
    """Yield the text of a paragraph; each literal is one word and is not searched for phrases."""
    if isinstance(node, nodes.literal):
        yield f"`{_STUCK.join(node.astext().split())}`"
    elif isinstance(node, nodes.Text):
        yield node.astext()
    else:
        for child in node.children:
            yield from _words(child)


def _of_sentence(sentence: str) -> Iterator[Fault]:
    shown = sentence.replace(_STUCK, " ")
    words = re.sub(r"(`[^`]*`, )+`", "`", sentence).split(" ")  # names in a row count as one word
    words = [word for word in words if any(map(str.isalnum, word))]
    if len(words) > LONGEST:
        yield Fault(shown, f"{len(words)} words: make sentences of at most {LONGEST}, a list or a table")
    prose = re.sub(r"`[^`]*`", "``", sentence)
    for pattern, advice in PATTERNS if _ANY_IDIOM.search(prose) else ():
        if found := pattern.search(prose):
            yield Fault(shown, f"the phrase \"{found[0]}\": {advice}")


def main(argv: list[str]) -> int:
    """Print the faults of the pages, of all of them if none is named."""
    found = [(page, fault) for page in (map(Path, argv) if argv else PAGES) for fault in faults(page.read_text())]
    for page, fault in found:
        print(f"{page.name}: {fault}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

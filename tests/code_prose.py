"""The prose in the code: docstrings, log messages, texts of errors, and help.

    python -m tests.code_prose [PATH ...]    print each fault as PATH:LINE: ADVICE; exit status 1 if there is one

The rules name grammar rather than words. A docstring begins with a verb or a noun phrase: its first word belongs to
no closed class (pronouns, relatives, prepositions, conjunctions, auxiliaries). It says more than the errors that are
raised. A sentence has no indefinite or free relative pronoun for a person or a thing that has a name. The rules of
:mod:`tests.prose` for pages hold as well.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests import prose

CODE = prose.TOP / "nova"
#: Words that begin neither a verb phrase nor a noun phrase, by their class.
OPENERS = {
    "an interrogative or relative": "what who whom whose which where when why how whether whoever whatever whichever "
                                    "wherever",
    "a conjunction": "if because since while until unless although though and or but nor than",
    "a preposition": "of for from in on at by with without to into before after between among beside besides under "
                     "over within during through per via as",
    "a pronoun": "it its they them their he she his her we us our you your that these those nobody somebody anybody "
                 "everybody none nothing something anything everything",
    "an auxiliary or a negation": "is are was were been has had does did may might can could must shall should "
                                  "will would not no",
}
#: phrase, as a regular expression -> what to write in its place.
PHRASES = {
    r"can not": "cannot",
    r"(some|any|every|no)body('s)?": "name the user, process or host",
    r"(who|what|which|where)ever": "name the user, thing or place",
    r"what (is|are|was|were|has|have|it|they|we|he)": "name the thing",
    r"(is|are|was|were) (no|none of)(?! (longer|more|less|better|worse|such|other|one|later|earlier|different|way|need|"
    r"room|space|reason))": "is not a valid ..., is not one of ..., or has no ...",
    r"(anew|beside|besides|betimes|whilst|amongst|upon|thither|hither)": "again, next to, while, among, on",
    r"(is|are) to (be|have|say|know|do|get|go)": "must, will, or should",
}
_OPENER = {word: kind for kind, words in OPENERS.items() for word in words.split()}
_FIRST = re.compile(r"[\W_]*([A-Za-z]+)")
_ERRORS_ONLY = re.compile(r"(?:[a-z_]+\.)?[A-Z]\w+(?:(?:, | or | and |: )(?:[a-z_]+\.)?[A-Z]\w+)*\.?(?:\s|$)")
_CAMEL = re.compile(r"[a-z_]+\.[A-Z]\w+|[A-Z][a-z]+[A-Z]\w*")
_PHRASES = tuple((re.compile(prose.WHOLE.format(phrase), re.IGNORECASE), advice) for phrase, advice in PHRASES.items())
_LITERAL = re.compile(r"``.*?``|:\w+:`.*?`|`[^`]*`|\"[^\"]*\"", re.DOTALL)
_PLACE = re.compile(r"%(?:\(\w+\))?[-+ #0]*\d*(?:\.\d+)?[sdrfxi%]|\{[^{}]*\}")
_HELP = {"help", "description", "epilog"}
_LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}


class Passage(NamedTuple):
    """A text of a module: ``kind`` is "docstring", "message" or "help"."""

    line: int
    kind: str
    text: str


class Fault(NamedTuple):
    """A passage's line, and what to write there."""

    line: int
    advice: str


def faults(source: str) -> Iterator[Fault]:
    """Yield the faults in a module's prose, in the order of its passages."""
    for passage in passages(ast.parse(source)):
        yield from (Fault(passage.line, advice) for advice in _advice(passage))


def passages(tree: ast.Module) -> Iterator[Passage]:
    """Yield the docstrings, log messages, error texts and help texts of a module."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            if text := ast.get_docstring(node):
                yield Passage(node.body[0].lineno, "docstring", text)
        elif isinstance(node, ast.Call):
            yield from _texts_of_call(node)


def _texts_of_call(call: ast.Call) -> Iterator[Passage]:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    owner = call.func.value.id if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) else ""
    if called in _LEVELS and owner == "LOG" or called == "row":
        yield from (Passage(one.lineno, "message", text) for one in call.args if (text := _text(one)) and " " in text)
    yield from (Passage(word.value.lineno, "help", text)
                for word in call.keywords if word.arg in _HELP and (text := _text(word.value)))


def _text(node: ast.expr) -> str:
    """Return a literal's text, or the literal parts of an f-string or a sum. Empty for other expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(one) if isinstance(one, ast.Constant) else "{}" for one in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return ""


def _advice(passage: Passage) -> Iterator[str]:
    text = _LITERAL.sub("`literal`", _PLACE.sub("`value`", passage.text))
    if passage.kind == "docstring":
        yield from _advice_on_opening(passage.text)
    for sentence in _sentences(text):
        for pattern, advice in (*_PHRASES, *prose.PATTERNS):
            if found := pattern.search(sentence):
                yield f"the phrase \"{found[0]}\": {advice}"
        words = [word for word in sentence.split() if any(map(str.isalnum, word))]
        if len(words) > prose.LONGEST:
            yield f"{len(words)} words: make sentences of at most {prose.LONGEST}: {sentence[:50]}..."


def _advice_on_opening(text: str) -> Iterator[str]:
    first = _FIRST.match(text)
    if first and (kind := _OPENER.get(first[1].lower())) and not text.startswith("``"):
        yield f"the docstring begins with {kind} (\"{first[1]}\"): begin with a verb or a noun phrase"
    elif (names := _ERRORS_ONLY.match(text)) and names[0].rstrip().endswith(".") and _CAMEL.match(text):
        yield f"the docstring begins with errors (\"{names[0].strip()}\"): say first what the function does"


def _sentences(text: str) -> Iterator[str]:
    """Yield each sentence of plain paragraphs and items, without code and tables."""
    for paragraph in re.split(r"\n(?:[ \t]*\n)+|\n\s*[*-] ", text):
        if not paragraph.startswith((" ", "=", "+", "|")):
            yield from re.split(r"(?<=[.?!;:])\s+", re.sub(r"\s+", " ", paragraph).strip())


def main(argv: list[str]) -> int:
    """Print the faults of the named modules; without arguments, of all modules of nova."""
    found = 0
    for top in map(Path, argv) if argv else (CODE,):
        for path in sorted(top.rglob("*.py")) if top.is_dir() else (top,):
            for fault in sorted(faults(path.read_text())):
                print(f"{path}:{fault.line}: {fault.advice}")
                found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Bodies in XML that are meant to do harm, or are none: 400, and soon."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova import errors
from nova.legacy.xml import reader
from nova.web.bodies import MAX_DEPTH

LAUGHS = b'<!DOCTYPE l [<!ENTITY a "ha">' + b"".join(
    b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9)) + b"]><l>&j;</l>"
HOSTILE = {
    "billion laughs": LAUGHS,
    "quadratic": b'<!DOCTYPE l [<!ENTITY a "' + b"a" * 20_000 + b'">]><l>' + b"&a;" * 20_000 + b"</l>",
    "external entity": b'<!DOCTYPE l [<!ENTITY a SYSTEM "file:///etc/passwd">]><l>&a;</l>',
    "parameter entity": b'<!DOCTYPE l [<!ENTITY % a SYSTEM "http://127.0.0.1:9/x"> %a;]><l/>',
    "external document type": b'<!DOCTYPE l SYSTEM "http://127.0.0.1:9/x.dtd"><l/>',
    "public document type": b'<!DOCTYPE l PUBLIC "-//x" "http://127.0.0.1:9/x.dtd"><l/>',
    "bare document type": b"<!DOCTYPE l><l/>",
    "notation": b'<!DOCTYPE l [<!NOTATION n SYSTEM "x"><!ENTITY a SYSTEM "y" NDATA n>]><l/>',
    "attribute defaults": b'<!DOCTYPE l [<!ATTLIST l a CDATA "x">]><l/>',
    "unknown entity": b"<l>&nbsp;</l>",
    "depth": b"<a>" * 10_000 + b"</a>" * 10_000,
    "depth, not closed": b"<a>" * 30_000,
    "elements": b"<a>" + b"<b/>" * (reader.MOST_ELEMENTS + 1) + b"</a>",
    "attributes": b"<a " + b" ".join(b'a%d="1"' % n for n in range(reader.MOST_ATTRIBUTES + 1)) + b"/>",
    "nul": b"<a>\x00</a>",
    "nul by number": b"<a>&#0;</a>",
    "surrogate by number": b"<a>&#xD800;</a>",
    "control character": b"<a>\x1b</a>",
    "utf-16": '<?xml version="1.0" encoding="UTF-16"?><a/>'.encode("utf-16"),
    "utf-16 without a mark": "<a/>".encode("utf-16-le"),
    "utf-16 that is utf-8": b'<?xml version="1.0" encoding="UTF-16"?><a/>',
    "utf-7": b'<?xml version="1.0" encoding="UTF-7"?>+ADw-a/+AD4-',
    "utf-7 that is ascii": b'<?xml version="1.0" encoding="utf-7"?><a/>',
    "utf-32": "<a/>".encode("utf-32"),
    "ebcdic": '<?xml version="1.0" encoding="cp037"?><a/>'.encode("cp037"),
    "latin": '<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'.encode("latin-1"),
    "overlong": b"<a>\xc0\xbc</a>",
    "surrogate in utf-8": b"<a>\xed\xa0\x80</a>",
    "unknown encoding": b"<?xml version='1.0' encoding='x-none'?><a/>",
    "nothing": b" ", "json": b'{"server": {}}', "two roots": b"<a/><b/>", "not closed": b"<a>",
    "an attribute twice": b"<a b='1' b='2'/>", "no prefix": b"<x:a/>", "text behind": b"<a/>x",
    "include, not closed": b'<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include',
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
def test_body_when_hostile_or_no_xml_then_is_invalid_and_soon(raw: bytes) -> None:
    began = time.process_time()
    with pytest.raises(errors.Invalid) as caught:
        reader.read(raw)
    assert time.process_time() - began < 1
    assert "Malformed request body" in caught.value.message
    assert len(caught.value.message) < 400


@pytest.mark.parametrize("raw", [
    b"<a/>", b"\xef\xbb\xbf<a/>", b'<?xml version="1.0"?><a/>', b"<?xml version='1.0' encoding='UTF-8'?>\n<a/>",
    b'<?xml version="1.0" encoding="us-ascii"?><a/>', b"<!-- of no matter --><a/>", b"<?of no matter?><a/>",
    b"<a>" * MAX_DEPTH + b"</a>" * MAX_DEPTH, b"<a>&lt;&#65;<![CDATA[<b>]]></a>", "<a>é</a>".encode()])
def test_body_when_plain_then_is_read(raw: bytes) -> None:
    assert reader.read(raw).tag == "a"


def test_include_when_named_then_is_an_element_as_any_other() -> None:
    root = reader.read(b'<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="/etc/passwd"/></a>')
    assert [child.tag for child in root] == ["{http://www.w3.org/2001/XInclude}include"]


@settings(deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet="<>/a&;!?'\"= []%#x0", max_size=80).map(str.encode))
def test_body_whatever_it_is_then_is_read_or_invalid(raw: bytes) -> None:
    try:
        assert reader.read(raw).tag
    except errors.Invalid as error:
        assert error.status == 400

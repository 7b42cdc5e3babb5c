"""Hosts' secrets, wrapped for the database."""

from __future__ import annotations

import base64

import pytest

from nova import errors
from nova.model.security.secret_wrap import MARK, SecretWrap, new_key

OLD, NEW = new_key(), new_key()
SECRET = "5" * 64


def test_secret_when_wrapped_then_it_opens_for_its_host_alone() -> None:
    wrap = SecretWrap((OLD,))
    kept = wrap.wrapped("a", SECRET)
    assert wrap.opened("a", kept) == SECRET and SECRET not in kept and len(kept) <= 255
    assert wrap.wrapped("a", SECRET) != kept  # two that are equal do not look so
    with pytest.raises(errors.host.SecretSealed):
        wrap.opened("b", kept)


@pytest.mark.parametrize("kept", [MARK, MARK + "x", MARK + "AAAA", MARK + "not base64!", MARK + "A" * 100])
def test_text_when_it_is_damaged_then_sealed(kept: str) -> None:
    with pytest.raises(errors.host.SecretSealed, match="host_secret_key"):
        SecretWrap((OLD,)).opened("a", kept)


def test_text_when_a_byte_was_changed_then_sealed() -> None:
    wrap = SecretWrap((OLD,))
    whole = bytearray(base64.urlsafe_b64decode(wrap.wrapped("a", SECRET).removeprefix(MARK)))
    whole[20] ^= 1
    with pytest.raises(errors.host.SecretSealed):
        wrap.opened("a", MARK + base64.urlsafe_b64encode(bytes(whole)).decode())


def test_keys_when_a_new_one_comes_then_the_first_wraps_and_all_open() -> None:
    before, both, after = SecretWrap((OLD,)), SecretWrap((NEW, OLD)), SecretWrap((NEW,))
    assert both.opened("a", before.wrapped("a", SECRET)) == SECRET
    assert after.opened("a", both.wrapped("a", SECRET)) == SECRET
    with pytest.raises(errors.host.SecretSealed):
        after.opened("a", before.wrapped("a", SECRET))


def test_nothing_and_what_was_kept_in_clear_stay_what_they_are() -> None:
    wrap = SecretWrap((OLD,))
    assert wrap.wrapped("a", "") == "" == wrap.opened("a", "") and wrap.opened("a", SECRET) == SECRET


@pytest.mark.parametrize("keys", [(), ("",), ("short",), ("ä" * 44,), (OLD, OLD[:-4])])
def test_keys_when_missing_or_malformed_then_the_error_says_how_to_make_one(keys: tuple[str, ...]) -> None:
    with pytest.raises(errors.config.HostSecretKey) as error:
        SecretWrap(keys)
    said = error.value.message
    assert "[conductor]host_secret_key" in said and "nova-manage host new-key" in said
    assert not any(key and key in said for key in keys)

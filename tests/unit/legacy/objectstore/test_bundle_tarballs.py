"""Tarballs of bundles: honest ones of all kinds that tar writes, and hostile ones."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from nova import concurrency, errors
from nova.legacy.objectstore.bundles.streams import BundleKey, decrypt, read_key
from nova.legacy.objectstore.bundles.tarball import HEADERS, ExpectedImage, unpack
from nova.legacy.objectstore.disk_space import DiskSpace
from tests.fakes.bundles import add_file, encrypted, tar_of, tar_with

DATA = bytes(range(256)) * 300
LIMIT = 2 ** 20
BLOCK = 512


def run(tmp_path: Path, packed: bytes, limit: int = LIMIT, **expected: object) -> bytes:
    (tmp_path / "packed").write_bytes(packed)
    (tmp_path / "image").unlink(missing_ok=True)
    unpack(tmp_path / "packed", tmp_path / "image", ExpectedImage(limit, **expected), DiskSpace(tmp_path, 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image", "packed"]
    return (tmp_path / "image").read_bytes()


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("name", ["disk.img", "./disk.img", "d" * 90, f"{'d' * 90}/{'e' * 90}"])
def test_unpack_when_it_is_of_any_format_then_the_image_is_its_file(tmp_path: Path, format: int, name: str) -> None:
    tar = tar_with(lambda made: add_file(made, name, DATA), format)
    assert run(tmp_path, gzip.compress(tar), size=len(DATA), sha1=hashlib.sha1(tar).hexdigest()) == DATA


def test_unpack_when_the_name_is_beyond_what_ustar_has_then_the_image_is_its_file(tmp_path: Path) -> None:
    for format in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        tar = tar_with(lambda made: add_file(made, "ü" * 300, DATA), format)
        assert run(tmp_path, gzip.compress(tar)) == DATA


def test_unpack_when_a_folder_is_before_the_file_then_the_file_is_taken(tmp_path: Path) -> None:
    def fill(tar: tarfile.TarFile) -> None:
        add_file(tar, ".", type=tarfile.DIRTYPE)
        add_file(tar, "./first", DATA)
        add_file(tar, "./second", b"not taken")
    assert run(tmp_path, gzip.compress(tar_with(fill))) == DATA


def test_unpack_when_gzip_has_several_members_then_they_are_joined(tmp_path: Path) -> None:
    """As pigz and others write them; zeros behind are padding."""
    tar = tar_of(DATA)
    packed = b"".join(gzip.compress(tar[start:start + 9999]) for start in range(0, len(tar), 9999))
    assert run(tmp_path, packed + bytes(1000), sha1=hashlib.sha1(tar).hexdigest()) == DATA


def test_unpack_when_the_file_is_empty_then_so_is_the_image(tmp_path: Path) -> None:
    assert run(tmp_path, gzip.compress(tar_of(b"")), size=0) == b""


def one(name: str = "x", data: bytes = b"", **facts: object) -> Callable[[tarfile.TarFile], object]:
    return lambda tar: add_file(tar, name, data, **facts)


def both(first: Callable[[tarfile.TarFile], object],
         second: Callable[[tarfile.TarFile], object]) -> Callable[[tarfile.TarFile], object]:
    return lambda tar: (first(tar), second(tar))


def raw(name: bytes, size: int, kind: bytes, rest: bytes = b"") -> bytes:
    """A header that no library would write. A size that octal cannot tell is in base 256."""
    size_field = b"%011o\0" % size if 0 <= size < 8 ** 11 else struct.pack(">Iq", 0x80000000 if size >= 0 else
                                                                          0xFFFFFFFF, size)
    header = bytearray(name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + size_field + b"00000000000\0"
                       + b" " * 8 + kind + bytes(100) + b"ustar  \0" + bytes(247))
    header[386:386 + len(rest)] = rest
    header = header[:BLOCK]
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def sparse(entries: list[tuple[int, int]], real_size: int, stored: int) -> bytes:
    """An old GNU sparse member: its map at 386, four entries of 24 bytes, whether it goes on, its real size."""
    fields = b"".join(b"%011o\0%011o\0" % entry for entry in entries).ljust(96, b"\0") + b"\0" + b"%011o\0" % real_size
    return raw(b"disk", stored, b"S", fields)


END = bytes(2 * BLOCK)
TARS: dict[str, tuple[bytes, str]] = {
    "a symbolic link": (tar_with(one(type=tarfile.SYMTYPE, linkname="/etc/passwd")), "link"),
    "a hard link": (tar_with(one(type=tarfile.LNKTYPE, linkname="/etc/passwd")), "link"),
    "a device": (tar_with(one(type=tarfile.BLKTYPE, devmajor=8, devminor=0)), "device"),
    "a character device": (tar_with(one(type=tarfile.CHRTYPE, devmajor=1, devminor=5)), "device"),
    "a pipe": (tar_with(one(type=tarfile.FIFOTYPE)), "device"),
    "an absolute name": (tar_with(one("/etc/passwd", DATA)), "directory"),
    "a name that leads up": (tar_with(one("../../etc/passwd", DATA)), "directory"),
    "a name that leads up within": (tar_with(one("a/../../b", DATA)), "directory"),
    "a folder that leads up": (tar_with(both(one("../x", type=tarfile.DIRTYPE), one("y", DATA))), "directory"),
    "a link before the file": (
        tar_with(both(one(type=tarfile.SYMTYPE, linkname="/etc"), one("x/passwd", DATA))), "link"),
    "a link behind the file": (tar_with(both(one("x", DATA), one("y", type=tarfile.SYMTYPE, linkname="/"))), "link"),
    "a second large file": (tar_with(both(one("x", DATA), one("y", bytes(HEADERS + 2 ** 20)))), "more than an image"),
    "many folders": (tar_with(lambda tar: [add_file(tar, "d", type=tarfile.DIRTYPE) for _ in range(1001)]), "no file"),
    "many files": (tar_with(lambda tar: [add_file(tar, "f") for _ in range(1002)]), "more than an image"),
    "half a header": (tar_of(DATA)[:300], "damaged"),
    "half an image": (tar_of(DATA)[:BLOCK + 1000], "tarball"),
    "a size below zero": (raw(b"x", -5, b"0") + END, "tarball"),
    "a huge long name": (raw(b"././@LongLink", 2 ** 40, b"L") + bytes(2 * HEADERS), "headers"),
    "a huge header of its own": (raw(b"x", 2 ** 40, b"x") + bytes(2 * HEADERS), "headers"),
    "a huge header behind the image": (tar_of(DATA)[:-9216] + raw(b"x", 2 ** 40, b"x") + bytes(2 * HEADERS),
                                       "more than an image"),
    "headers of headers": (raw(b"x", 0, b"x") * 3000 + END, "tarball"),
    "a map that goes back": (sparse([(4096, 512), (0, 512)], 8192, 1024) + bytes(1024) + END, "sparse"),
    "a map that overlaps": (sparse([(0, 1024), (512, 1024)], 8192, 2048) + bytes(2048) + END, "sparse"),
    "a map beyond the end": (sparse([(0, 512), (9999, 512)], 8192, 1024) + bytes(1024) + END, "sparse"),
    "a map of what is not there": (sparse([(0, 8192)], 8192, 8192) + bytes(512), "tarball"),
    "noise": (hashlib.sha512(b"noise").digest() * 999, "damaged"),
}


@pytest.mark.parametrize("case", TARS)
def test_unpack_when_the_tarball_is_hostile_then_it_is_refused_in_little_memory(tmp_path: Path, case: str) -> None:
    tar, word = TARS[case]
    packed = gzip.compress(tar)
    tracemalloc.start()
    with pytest.raises(errors.bundle.Tarball, match=word):
        run(tmp_path, packed)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 32 * 2 ** 20
    assert not (tmp_path.parent / "x").exists()


def test_unpack_when_a_sparse_image_is_right_then_its_holes_are_zeros(tmp_path: Path) -> None:
    tar = sparse([(512, 512), (4096, 512)], 8192, 1024) + b"a" * 512 + b"b" * 512 + END
    expected = bytes(512) + b"a" * 512 + bytes(3072) + b"b" * 512 + bytes(3584)
    assert run(tmp_path, gzip.compress(tar)) == expected


def test_unpack_when_a_sparse_image_says_it_is_huge_then_nothing_is_written(tmp_path: Path) -> None:
    tar = sparse([(0, 512)], 8 ** 11 - 1, 512) + bytes(512) + END
    with pytest.raises(errors.bundle.TooLong):
        run(tmp_path, gzip.compress(tar))
    assert not (tmp_path / "image").exists()


def test_unpack_when_it_is_a_bomb_then_it_ends_at_the_bound(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(errors.bundle.TooLong):
        run(tmp_path, gzip.compress(tar_of(bytes(LIMIT + 1))))
    endless = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = endless.compress(tar_of(DATA)) + b"".join(endless.compress(bytes(2 ** 20)) for _ in range(300))
    with pytest.raises(errors.bundle.Tarball, match="more than an image"):
        run(tmp_path, packed + endless.flush())
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("limit", [len(DATA), len(DATA) - 1])
def test_unpack_when_the_image_is_at_its_bound_then_one_byte_more_is_refused(tmp_path: Path, limit: int) -> None:
    packed = gzip.compress(tar_of(DATA))
    if limit == len(DATA):
        assert run(tmp_path, packed, limit) == DATA
    else:
        with pytest.raises(errors.bundle.TooLong):
            run(tmp_path, packed, limit)


def test_unpack_when_gzip_is_damaged_anywhere_then_it_is_refused(tmp_path: Path) -> None:
    """By its own check sum, or by what tar or the digest says."""
    tar = tar_of(DATA)
    packed, digest = gzip.compress(tar), hashlib.sha1(tar).hexdigest()
    for at in range(10, len(packed), max(1, len(packed) // 60)):
        with pytest.raises((errors.bundle.Tarball, errors.bundle.Digest)):
            run(tmp_path, packed[:at] + bytes([packed[at] ^ 0xFF]) + packed[at + 1:], sha1=digest)


def test_unpack_when_something_follows_the_gzip_then_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.bundle.Tarball, match="gzip"):
        run(tmp_path, gzip.compress(tar_of(DATA)) + b"more")


def test_unpack_when_the_disk_has_no_room_for_the_whole_image_then_nothing_of_it_is_written(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 3 * 2 ** 20
    monkeypatch.setattr(DiskSpace, "lacks", lambda room, more=0: more >= size)  # each piece alone would have room
    with pytest.raises(errors.bundle.NoRoom) as caught:
        run(tmp_path, gzip.compress(tar_of(bytes(size))), 2 * size)
    assert str(size) in caught.value.message and not (tmp_path / "image").exists()


def test_unpack_when_nobody_wants_it_any_more_then_it_ends(tmp_path: Path) -> None:
    class Unwanted(Exception):
        pass

    def unwanted() -> None:
        raise Unwanted
    with pytest.raises(Unwanted), concurrency.cancellable(unwanted):
        run(tmp_path, gzip.compress(tar_of(DATA)))


KEY = BundleKey(bytes(range(16)), bytes(range(16, 32)))


def decrypted(tmp_path: Path, data: bytes, key: BundleKey = KEY) -> bytes:
    (tmp_path / "encrypted").write_bytes(data)
    (tmp_path / "plain").unlink(missing_ok=True)
    decrypt(tmp_path / "encrypted", tmp_path / "plain", key, DiskSpace(tmp_path, 0))
    return (tmp_path / "plain").read_bytes()


@pytest.mark.parametrize("size", [0, 1, 15, 16, 2 ** 20 - 8, 2 ** 20, 2 ** 20 + 8])
def test_decrypt_when_the_key_is_right_then_the_data_are_back(tmp_path: Path, size: int) -> None:
    data = b"\x1f\x8b\x08" + bytes(size)
    assert decrypted(tmp_path, encrypted(data, KEY.key.hex(), KEY.iv.hex())) == data


def test_decrypt_when_anything_is_wrong_then_it_is_refused(tmp_path: Path) -> None:
    right = encrypted(gzip.compress(DATA + b"more"), KEY.key.hex(), KEY.iv.hex())
    for data in (b"", right[:-1], right[:-16], right + b"x", right[16:]):
        with pytest.raises(errors.bundle.Cipher):
            decrypted(tmp_path, data)
    for number in range(300):  # one of 256 wrong keys has a padding that looks right
        with pytest.raises(errors.bundle.Cipher):
            decrypted(tmp_path, right, BundleKey(number.to_bytes(16, "big"), KEY.iv))


@pytest.mark.parametrize("text", ["", "00", "0" * 31, "0" * 33, "g" * 32, "0" * 31 + "\u0661"])
def test_read_key_when_it_is_none_then_it_is_refused_without_saying_what_it_was(text: str) -> None:
    for pair in ((text, "a" * 32), ("a" * 32, text)):
        with pytest.raises(errors.bundle.KeyRefused) as refused:
            read_key(*pair)
        assert "aaaa" not in refused.value.message
    found = read_key("ab" * 16 + "\n", " " + "CD" * 16)
    assert found == (b"\xab" * 16, b"\xcd" * 16) and "ab" not in repr(found) and io.StringIO(repr(found)).read()

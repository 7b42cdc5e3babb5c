"""Text form of a certificate, as ``openssl x509 -text`` prints it: a description, then the PEM block."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

SHORT = {NameOID.COUNTRY_NAME: "C", NameOID.STATE_OR_PROVINCE_NAME: "ST", NameOID.LOCALITY_NAME: "L",
         NameOID.ORGANIZATION_NAME: "O", NameOID.ORGANIZATIONAL_UNIT_NAME: "OU", NameOID.COMMON_NAME: "CN"}
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")  # not the locale's
QUOTED = frozenset(",+<>;")
LONGEST_SERIAL = 2**63  # from here on openssl shows bytes instead of a number
KEY_BYTES, SIGNATURE_BYTES = 15, 18  # per line
SIGNED_BY = "Signature Algorithm: sha256WithRSAEncryption"


def text_of(certificate: x509.Certificate) -> str:
    """Return the text of a certificate issued by nova-cert: RSA, SHA-256, and only the extension basic constraints."""
    pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
    return "\n".join(_lines(certificate)) + "\n" + pem


def _lines(certificate: x509.Certificate) -> Iterator[str]:
    yield "Certificate:"
    yield "    Data:"
    yield "        Version: 3 (0x2)"
    yield from _serial(certificate.serial_number)
    yield f"        {SIGNED_BY}"
    yield f"        Issuer: {_name(certificate.issuer)}"
    yield "        Validity"
    yield f"            Not Before: {_moment(certificate.not_valid_before_utc)}"
    yield f"            Not After : {_moment(certificate.not_valid_after_utc)}"
    yield f"        Subject: {_name(certificate.subject)}"
    yield from _key(certificate)
    yield from _constraints(certificate)
    yield f"    {SIGNED_BY}"
    yield "    Signature Value:"
    yield from _bytes(certificate.signature, SIGNATURE_BYTES, 8)


def _serial(number: int) -> Iterator[str]:
    if number < LONGEST_SERIAL:
        yield f"        Serial Number: {number} (0x{number:x})"
        return
    yield "        Serial Number:"
    yield f"            {number.to_bytes((number.bit_length() + 7) // 8).hex(':')}"


def _moment(when: datetime.datetime) -> str:
    return f"{MONTHS[when.month - 1]} {when.day:2} {when:%H:%M:%S} {when.year} GMT"


def _name(name: x509.Name) -> str:
    return ", ".join(f"{SHORT.get(part.oid, part.oid.dotted_string)}={_value(str(part.value))}" for part in name)


def _value(text: str) -> str:
    """Return a value, quoted if it has separators, and with other characters than ASCII as escaped bytes."""
    quoted = QUOTED.intersection(text) or text != text.strip(" ") or text.startswith("#")
    plain = "".join(f"\\{letter}" if letter in '"\\' else letter for letter in text)
    shown = "".join(letter if letter.isascii() else "".join(f"\\{byte:02X}" for byte in letter.encode())
                    for letter in plain)
    return f'"{shown}"' if quoted else shown


def _key(certificate: x509.Certificate) -> Iterator[str]:
    key = certificate.public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    numbers = key.public_numbers()
    yield "        Subject Public Key Info:"
    yield "            Public Key Algorithm: rsaEncryption"
    yield f"                Public-Key: ({key.key_size} bit)"
    yield "                Modulus:"
    yield from _bytes(numbers.n.to_bytes(numbers.n.bit_length() // 8 + 1), KEY_BYTES, 20)  # DER integers are signed
    yield f"                Exponent: {numbers.e} (0x{numbers.e:x})"


def _constraints(certificate: x509.Certificate) -> Iterator[str]:
    found = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    yield "        X509v3 extensions:"
    yield f"            X509v3 Basic Constraints:{' critical' if found.critical else ' '}"
    yield f"                CA:{'TRUE' if found.value.ca else 'FALSE'}"


def _bytes(value: bytes, width: int, indent: int) -> Iterator[str]:
    for at in range(0, len(value), width):
        end = ":" if at + width < len(value) else ""
        yield f"{' ' * indent}{value[at:at + width].hex(':')}{end}"

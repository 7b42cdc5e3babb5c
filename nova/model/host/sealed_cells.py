"""Encryption of recorded cells' URLs, which have passwords of databases and brokers.

Templates stay readable, because they have placeholders in place of secrets. The URL of cell0's broker, which does not
exist, stays readable, too.
"""

from __future__ import annotations

from nova import errors, failures
from nova.model.host.cell_urls import NO_BROKER, CellUrls, filled, is_template
from nova.model.host.cells import CellMapping
from nova.model.security.secret_wrap import SecretWrap


def sealed(wrap: SecretWrap, uuid: str, column: str, url: str) -> str:
    """Return the URL or template of a cell as its record keeps it. The text decrypts only in this column of this
    cell's record."""
    return url if is_template(url) or url.startswith(NO_BROKER) else wrap.wrapped(_place(uuid, column), url)


def unsealed(wrap: SecretWrap, cell: CellMapping, column: str) -> str | None:
    """Return the recorded URL or template of a cell; None if it has none. Raises config.CellUrlSealed if no key
    decrypts it."""
    kept: str | None = getattr(cell, column)
    with failures.replaced(errors.host.SecretSealed, lambda _: errors.config.CellUrlSealed(
            column=column, cell=cell.uuid)):
        return None if kept is None else wrap.opened(_place(cell.uuid, column), kept)


def url_of(wrap: SecretWrap, cell: CellMapping, column: str, configured: CellUrls) -> str:
    """Return a cell's URL, decrypted or filled from the configured one. Raises config.CellUrlSealed."""
    url, kept = unsealed(wrap, cell, column), getattr(cell, column)
    # What was encrypted is no template, whatever braces its password has.
    return filled(url, getattr(configured, column)) if url is None or url == kept else url


def opened(wrap: SecretWrap, cell: CellMapping, configured: CellUrls) -> CellMapping:
    """Return the cell with its URLs, decrypted or filled from the configured ones. Raises config.CellUrlSealed."""
    return cell.with_urls(*(url_of(wrap, cell, column, configured) for column in CellUrls._fields))


def resealed(wrap: SecretWrap, cell: CellMapping) -> CellMapping:
    """Return the cell with URLs that the first key encrypts. Raises config.CellUrlSealed."""
    found = {column: unsealed(wrap, cell, column) for column in CellUrls._fields}
    return cell.with_urls(*(url and sealed(wrap, cell.uuid, column, url) for column, url in found.items()))


def _place(uuid: str, column: str) -> str:
    return f"{uuid}/{column}"

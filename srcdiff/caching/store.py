"""The entries of the cache on disk: their location, their checks, reading, writing and removal.

An entry is one file, named by its key, that starts with a checksum of the key and the contents. It is written under
another name and then renamed, so a reader never sees a partial entry. An entry that cannot be read or written counts as
missing, and the caller continues without it. So does anything else with its name: a directory, a device, a pipe.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_ENDING, _UNFINISHED = ".srcdiff", ".srcdiff-unfinished"
_CHECKSUM = hashlib.sha256().digest_size
_DAY = 24 * 3600.0
_UNUSED = 30 * _DAY
"""After this time without use an entry is thrown away."""
_LARGEST = 2**28
"""No entry has more bytes."""

_swept: set[Path] = set()


def directory() -> Path | None:
    """The directory of the cache: `SRCDIFF_CACHE_DIR`, or `srcdiff` in the user's own cache directory."""
    given = os.environ.get("SRCDIFF_CACHE_DIR")
    if given:
        return Path(given)
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if Path(caches).is_absolute():
        return Path(caches, "srcdiff")
    try:
        return Path.home() / ".cache" / "srcdiff"
    except RuntimeError:
        return None  # the home directory is not known


def get(key: str) -> bytes | None:
    """The contents of the entry, if it exists, has the right checksum, and belongs to this user."""
    place = _usable_directory(create=False)
    if place is None:
        return None
    path = place / f"{key}{_ENDING}"
    try:
        content, status = _read(path)
    except (OSError, MemoryError):
        return None
    if time.time() - status.st_mtime > _DAY:
        with contextlib.suppress(OSError):
            os.utime(path)  # in use: it is not swept away
    checksum, data = content[:_CHECKSUM], content[_CHECKSUM:]
    return data if checksum == _checksum(key, data) else None


def _read(path: Path) -> tuple[bytes, os.stat_result]:
    """The contents of a regular file of the user; None for anything else, and for files too large to be an entry.

    Devices and pipes are not opened: opening a device may have effects, and opening a pipe may block.
    """
    status = path.stat()
    if not (stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST and _is_ours(status)):
        return b"", status
    with path.open("rb") as file:
        return file.read(_LARGEST), status


def _checksum(key: str, data: bytes) -> bytes:
    """Checks the key, too: the entry of another key counts as none."""
    return hashlib.sha256(key.encode() + b"\0" + data).digest()


def put(key: str, data: bytes) -> None:
    """Write an entry, or leave it on a full disk, in a directory that cannot be written or is not private."""
    place = _usable_directory(create=True)
    if place is None:
        return
    with contextlib.suppress(OSError):
        with tempfile.NamedTemporaryFile(dir=place, suffix=_UNFINISHED, delete=False) as file:
            unfinished = Path(file.name)
            try:
                file.write(_checksum(key, data) + data)
                file.close()
                unfinished.replace(place / f"{key}{_ENDING}")
            except BaseException:
                unfinished.unlink()
                raise
        if place not in _swept:
            _swept.add(place)
            _sweep()


def is_usable() -> bool:
    """Whether entries can be read and written: the directory can be made, and is the user's alone to write."""
    place = _usable_directory(create=True)
    return place is not None and os.access(place, os.W_OK)


def size() -> tuple[int, int]:
    """How many files there are, and how many bytes they hold together."""
    sizes = [status.st_size for _, status in _files()]
    return len(sizes), sum(sizes)


def clear() -> None:
    """Throw everything away; processes that use it go on without."""
    for path, _ in _files():
        with contextlib.suppress(OSError):
            path.unlink()


def _sweep() -> None:
    """Remove entries that were not used for a long time, and unfinished files of killed processes."""
    now = time.time()
    for path, status in _files():
        limit = _DAY if path.name.endswith(_UNFINISHED) else _UNUSED
        if now - status.st_mtime > limit:
            with contextlib.suppress(OSError):
                path.unlink()


def _files() -> Iterator[tuple[Path, os.stat_result]]:
    place = _usable_directory(create=False)
    if place is None:
        return
    with contextlib.suppress(OSError):
        for path in list(place.iterdir()):
            if path.name.endswith((_ENDING, _UNFINISHED)):
                with contextlib.suppress(OSError):
                    yield path, path.lstat()


def _usable_directory(*, create: bool) -> Path | None:
    """The directory, if it belongs to the user and only the user can write to it."""
    place = directory()
    if place is None:
        return None
    try:
        if create and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir(mode=0o700, exist_ok=True)
        status = place.stat()
        return place if stat.S_ISDIR(status.st_mode) and _is_ours(status) else None
    except OSError:
        return None


def _is_ours(status: os.stat_result) -> bool:
    """Whether the user owns it and others cannot write to it; always true on systems without these modes."""
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

"""A folder whose files nobody but this user and root can have written: the only one that machine code is loaded from.

Owners and modes are those of descriptors that are open already, so that nothing can change between the check and the
use; files are opened relative to the folder's descriptor, never by their whole path again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Untrusted(OSError):
    """Somebody else may have written a file or a folder; says which and why."""


class PrivateFolder:
    """A folder that is open and was checked. Names are of files right inside of it."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def read(self, name: str) -> bytes:
        """The contents of a regular file.

        Raises `Untrusted` where somebody else may have written it, or where it is a link or no file; `OSError` where it
        cannot be read.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO would wait for its writer
        try:
            descriptor = os.open(name, flags, dir_fd=self._descriptor)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise Untrusted(f"{os.path.join(self.path, name)} cannot be opened: {error.strerror}") from None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Untrusted(f"{os.path.join(self.path, name)} is no regular file")
            require_private(os.path.join(self.path, name), status)
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)

    def write(self, name: str, content: bytes) -> None:
        """Make a file, or replace it in one step; raises `OSError` where that fails."""
        new = f".new-{name[:16]}-{os.urandom(8).hex()}"  # that no other thread or process writes to
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(new, flags, 0o600, dir_fd=self._descriptor), "wb") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(content)
            os.replace(new, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except BaseException:
            self.remove(new)
            raise

    def remove(self, name: str) -> None:
        """Remove a file, if it is there and can be removed."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self._descriptor)

    def touch(self, name: str) -> None:
        """Set the time of a file's last use to now."""
        with suppress(OSError):
            os.utime(name, dir_fd=self._descriptor, follow_symlinks=False)

    def files(self, suffix: str = "", prefix: str = "") -> list[tuple[str, os.stat_result]]:
        """The regular files with names of this form, and their states."""
        found = []
        with os.scandir(self._descriptor) as entries:
            for entry in entries:
                if not entry.name.endswith(suffix) or not entry.name.startswith(prefix):
                    continue
                with suppress(OSError):  # removed by another process meanwhile
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        found.append((entry.name, status))
        return found


@contextmanager
def opened(path: str) -> Iterator[PrivateFolder]:
    """A folder that exists; raises `Untrusted` where others may write it, `OSError` where it cannot be opened."""
    descriptor = _open(path)
    try:
        status = os.fstat(descriptor)
        require_private(path, status)
        yield PrivateFolder(path, descriptor)
    finally:
        os.close(descriptor)


def make(path: str) -> None:
    """Make a folder and those above it that are missing, for this user alone, whatever the umask."""
    missing = []
    while path and not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    for each in reversed(missing):
        with suppress(FileExistsError):  # made by another process meanwhile: its owner is checked when it is opened
            os.mkdir(each, 0o700)
            if os.lstat(each).st_mode & 0o777 != 0o700:  # for a umask that takes bits from the user
                os.chmod(each, 0o700)


def require_private(path: str, status: os.stat_result) -> None:
    """Raise `Untrusted` where somebody other than this user and root owns a file or folder, or may write it."""
    user = os.geteuid()
    if status.st_uid not in (user, 0):
        raise Untrusted(f"{path} belongs to user {status.st_uid}, and this process runs as user {user}")
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise Untrusted(f"{path} is writable by other users (mode {stat.S_IMODE(status.st_mode):04o})")


def _open(path: str) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(OSError):
        return os.open(path, flags)
    # In a folder that all may write, as /tmp, anybody can lay a link.
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        if status.st_uid not in (os.geteuid(), 0):
            raise Untrusted(f"{path} is a link of user {status.st_uid}")
        path = os.path.realpath(path)
    return os.open(path, flags)

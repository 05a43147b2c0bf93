"""Directory capabilities, grants that end, and path checks that hold at use."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, List, Literal, Optional, Protocol, TextIO, Union, final, overload

from typing_extensions import disjoint_base

__all__ = [
    "Denied",
    "DirCap",
    "Entry",
    "Grant",
    "PathWithin",
    "Stat",
    "open_within_dir",
    "revoke",
    "validate_within_dir",
]

_Name = Union[str, bytes, os.PathLike[str], os.PathLike[bytes]]
_Right = Literal["fs.*", "fs.list", "fs.read", "fs.create", "fs.modify", "fs.delete"]
_Kind = Literal["file", "dir", "symlink", "special"]
_State = Literal["live", "orphaned", "revoked", "expired", "exhausted"]

class Denied(PermissionError):
    """It was refused; nothing was done."""

    code: str
    """Why, in one stable word, such as `outside-root` or `exhausted`."""

@final
class Entry:
    """One name in a directory."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> _Kind: ...

@final
class Stat:
    """Facts about a file."""

    @property
    def kind(self) -> _Kind: ...
    @property
    def size(self) -> int: ...
    @property
    def mode(self) -> int: ...
    @property
    def links(self) -> int: ...
    @property
    def modified_ns(self) -> int: ...

@disjoint_base
class DirCap:
    """An open directory and the right to do something in it.

    Every name is relative to it; the kernel checks at each use that what it
    leads to lies below the directory.
    """

    def __new__(
        cls, path: Union[str, os.PathLike[str]], rights: Optional[Sequence[_Right]] = None
    ) -> DirCap: ...
    def read(self, path: _Name, max_bytes: int = ...) -> bytes: ...
    def open(self, path: _Name) -> BinaryIO:
        """For reading. What is open stays open when the grant ends."""

    def create(self, path: _Name, data: bytes, mode: Optional[int] = None) -> None:
        """A file that must not be there yet."""

    def write(self, path: _Name, data: bytes) -> None:
        """All of a file that is there, replaced at once."""

    def append(self, path: _Name, data: bytes) -> None:
        """More at the end of a file that is there."""

    def list(self, path: Optional[_Name] = None) -> List[Entry]: ...
    def stat(self, path: _Name) -> Stat: ...
    def subdir(self, path: _Name) -> DirCap:
        """A directory below; it ends with what it comes from."""

    def mkdir(self, path: _Name, mode: int = 0o755) -> None: ...
    def remove(self, path: _Name) -> None:
        """A file, a link or an empty directory."""

    def rename(self, old: _Name, new: _Name) -> None:
        """To a name that is free. Two uses."""

    def grant(
        self,
        rights: Optional[Sequence[_Right]] = None,
        uses: Optional[int] = None,
        seconds: Optional[float] = None,
        below: Optional[_Name] = None,
    ) -> Grant: ...
    @property
    def state(self) -> Optional[_State]: ...

@final
class Grant(DirCap):
    """A capability made from another: never more, with an end, revocable."""

    def __new__(
        cls,
        cap: DirCap,
        rights: Optional[Sequence[_Right]] = None,
        uses: Optional[int] = None,
        seconds: Optional[float] = None,
        below: Optional[_Name] = None,
    ) -> Grant: ...

def revoke(grant: Grant) -> int:
    """Ends a grant and everything made from it; how many grants that were."""

class _Resolves(Protocol):
    def resolve(self) -> Path: ...

@final
class PathWithin:
    """A path below a directory that is open: what passes the check is what is used.

    In place of `root / name`. It is no `os.PathLike`: what would act by its name
    alone fails.
    """

    def __new__(cls, root: Union[str, os.PathLike[str]], *parts: str) -> PathWithin: ...
    def __truediv__(self, name: str, /) -> PathWithin: ...
    def resolve(self) -> Path:
        """Where it leads now, as a path that holds nothing."""

    @property
    def name(self) -> str: ...
    @property
    def suffix(self) -> str: ...
    def exists(self) -> bool: ...
    def is_file(self) -> bool: ...
    def is_dir(self) -> bool: ...
    def read_bytes(self) -> bytes: ...
    def read_text(self, encoding: Optional[str] = None, errors: Optional[str] = None) -> str: ...
    @overload
    def open(
        self,
        mode: Literal["r", "rt"] = "r",
        encoding: Optional[str] = None,
        errors: Optional[str] = None,
    ) -> TextIO: ...
    @overload
    def open(
        self, mode: Literal["rb"], encoding: Optional[str] = None, errors: Optional[str] = None
    ) -> BinaryIO: ...
    def write_bytes(self, data: bytes) -> int:
        """All of the file, at once; it is made if it is not there."""

    def write_text(self, text: str, encoding: str = "utf-8", errors: str = "strict") -> int: ...

def validate_within_dir(path: Union[Path, _Resolves], root: Union[Path, _Resolves]) -> Optional[str]:
    """`None` if `path` resolves to a place within `root`, else why not.

    An answer about now: what is opened afterwards may be something else.
    """

def open_within_dir(path: Path, root: Path) -> BinaryIO:
    """Opens a file within `root` for reading, or raises.

    The kernel refuses to leave `root`, whatever is swapped meanwhile.
    """

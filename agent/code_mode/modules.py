"""What a script may import: loaded before the seal, since nothing can be opened after it. Standard library only."""

from __future__ import annotations

import importlib
import re
import sys

# For work on data, and what people import by habit. A name here gives no right: the seal decides what works.
AVAILABLE = """
    abc argparse array ast asyncio base64 binascii bisect builtins bz2 calendar cmath codecs collections
    collections.abc colorsys concurrent.futures configparser contextlib contextvars copy csv ctypes
    dataclasses datetime decimal difflib dis email.message email.parser email.utils enum errno fcntl fnmatch fractions
    functools gc getpass glob graphlib gzip hashlib heapq hmac html html.parser http http.client importlib inspect io
    ipaddress itertools json keyword linecache locale logging lzma marshal math mimetypes mmap multiprocessing
    multiprocessing.pool numbers operator os os.path pathlib pickle platform pprint pwd queue quopri random re
    reprlib resource sched secrets select selectors shlex shutil signal socket sqlite3 stat statistics string
    stringprep struct subprocess sys tempfile textwrap threading time timeit tokenize tomllib traceback types typing
    unicodedata urllib.error urllib.parse urllib.request uuid warnings weakref xml.dom.minidom xml.etree.ElementTree
    zipfile zlib zoneinfo
""".split()  # noqa: SIM905  a list of names reads better as words

# What these import late by themselves, which would fail behind the seal.
LATE = {
    "strptime": ("_strptime",),
    "sqlite3": ("sqlite3.dbapi2",),
    "asyncio": ("asyncio.events", "asyncio.unix_events", "asyncio.runners", "asyncio.taskgroups"),
    "futures": ("concurrent.futures.thread",),
    "random": ("random", "bisect"),
    "csv": ("csv", "io"),
    "ElementTree": ("xml.etree.ElementTree", "xml.etree.cElementTree", "pyexpat"),
    "traceback": ("traceback", "linecache", "tokenize"),
    "pickle": ("pickle", "copyreg"),
    "hashlib": ("hashlib", "_blake2", "_sha3", "_md5", "_sha1"),
    "decimal": ("decimal", "numbers"),
    "socket": ("socket", "encodings.idna"),
    "zipfile": ("zipfile", "encodings.cp437"),
    "subprocess": ("subprocess", "signal", "fcntl"),
    "pathlib": ("pathlib", "fnmatch", "urllib.parse"),
    "typing": ("typing", "collections.abc"),
}
ENCODINGS = [
    f"encodings.{name}"
    for name in (
        *("ascii", "latin_1", "cp1252", "cp437", "iso8859_15", "utf_8_sig", "utf_16", "utf_16_le", "utf_16_be"),
        *("utf_32", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "hex_codec", "base64_codec"),
        *("rot_13", "zlib_codec"),
    )
]
_WORD = re.compile(r"[A-Za-z_]\w*")
_THREADS = re.compile(r"\b(threading|futures|asyncio|_thread|multiprocessing|ThreadPoolExecutor)\b")


def mentioned(code: str) -> list[str]:
    """The modules whose names occur in the script, whatever for: too many cost a moment, one too few the run."""
    words = set(_WORD.findall(code))
    names = [name for name in AVAILABLE if set(name.split(".")) <= words]
    names += [late for word, more in LATE.items() if word in words for late in more]
    return names


def wants_threads(code: str) -> bool:
    return _THREADS.search(code) is not None


def load(names: list[str]) -> None:
    """Import what there is of these; a module that this Python was built without is left out."""
    for name in names:
        if name not in sys.modules:
            try:
                importlib.import_module(name)
            except ImportError:
                continue


def load_for(code: str) -> None:
    """What this script may need, and no more: the cold start's time is mostly imports."""
    load(mentioned(code))
    if "code" in code:  # encode, decode, codecs
        load(ENCODINGS)
    touch()


def load_all() -> None:
    load([*AVAILABLE, *(late for more in LATE.values() for late in more)])
    load(ENCODINGS)
    touch()


def touch() -> None:
    """Let the C library read now what it reads once, at first use."""
    import time

    time.tzset()
    time.localtime()

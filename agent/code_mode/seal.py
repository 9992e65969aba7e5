"""The seal: everything a process gives up, for good, before foreign code runs in it. Standard library only.

Each layer reports for itself whether it holds. The caller compares that with what the operator requires; nothing
here decides that a missing layer is good enough.
"""

from __future__ import annotations

import ctypes
import functools
import os
import resource
import signal
import struct
import sys

from agent.code_mode import filter as seccomp
from agent.code_mode.layers import (
    LANDLOCK,
    NO_NEW_PRIVILEGES,
    NOT_DUMPABLE,
    OWN_USER,
    PARENT_DEATH,
    RLIMITS,
    SECCOMP,
)
from agent.code_mode.syscalls import CAPSET, LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF, NUMBERS

# linux/prctl.h, linux/seccomp.h, linux/landlock.h, linux/capability.h
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 4, 24, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC = 1, 1
LANDLOCK_CREATE_RULESET_VERSION = 1
CAPABILITY_VERSION_3 = 0x20080522
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # Landlock ABI -> how many rights on files it knows
NEW_ABI = 6

OWN_USERS = 0x7A000000  # plus the process id: above the ranges of people, services and containers
FALLBACK_USERS = 60_000  # plus the process id, modulo: where a user namespace maps 65,536 ids only
OPEN_FILES = 64
QUEUED_SIGNALS = 64

TYPE_CHECKING = False  # as in `typing`, whose import would take longer than all of this module
if TYPE_CHECKING:
    from collections.abc import Callable

Layers = dict[str, str]  # layer -> "" when it holds, else why not


def seal(*, parent: int, memory_bytes: int, cpu_seconds: int, park: Callable[[], None], skip: list[str]) -> Layers:
    """Give up files, network, other processes and new privileges. `park` makes the threads that may be used later.

    `skip` names layers to leave out, so that each can be shown to matter; it comes from the trusted side.
    """
    own_user = os.getuid() == 0 and OWN_USER not in skip
    layers: Layers = {}
    steps: list[tuple[str, Callable[[], str]]] = [
        (RLIMITS, lambda: _limit(memory_bytes, cpu_seconds)),
        (OWN_USER, _drop_user if own_user else _drop_capabilities),
        (NOT_DUMPABLE, lambda: prctl(PR_SET_DUMPABLE, 0)),
        (PARENT_DEATH, lambda: _die_with(parent)),  # after the change of user, which clears it
        (NO_NEW_PRIVILEGES, lambda: prctl(PR_SET_NO_NEW_PRIVS, 1)),
        (LANDLOCK, _landlock),
    ]
    for name, step in steps:
        fault = "left out" if name in skip and name != OWN_USER else step()
        layers[name] = fault or ("left out" if name in skip else "")
    park()  # threads made from here on have all of the above; the filter is put over them together
    layers[RLIMITS] = layers[RLIMITS] or _set(resource.RLIMIT_NPROC, 0)
    layers[SECCOMP] = "left out" if SECCOMP in skip else _seccomp()
    return layers


def prepare() -> None:
    """Make now what every seal needs, for a process that will be forked."""
    _libc()
    machine = os.uname().machine
    if machine in NUMBERS:
        seccomp.program(machine, 1)


@functools.cache
def _libc() -> ctypes.CDLL:
    """Made once: a class is built for each, which takes longer than the calls."""
    return ctypes.CDLL(None, use_errno=True)


def _failed() -> str:
    return os.strerror(ctypes.get_errno())


def prctl(option: int, value: int) -> str:
    if sys.platform != "linux":
        return f"not on {sys.platform}"
    zero = ctypes.c_ulong(0)
    return "" if _libc().prctl(option, ctypes.c_ulong(value), zero, zero, zero) == 0 else _failed()


def _set(limit: int, value: int) -> str:
    """Lower a limit for good; a lower one that stands already is kept."""
    # A second more for CPU time: the first limit says so by a signal of its own, the second kills who ignores it.
    highest = value + 1 if limit == resource.RLIMIT_CPU else value
    try:
        hard = resource.getrlimit(limit)[1]
        highest = highest if hard == resource.RLIM_INFINITY else min(highest, hard)
        resource.setrlimit(limit, (min(value, highest), highest))
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _limit(memory_bytes: int, cpu_seconds: int) -> str:
    wanted = {
        "RLIMIT_AS": memory_bytes,
        "RLIMIT_CPU": cpu_seconds,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NOFILE": OPEN_FILES,
        "RLIMIT_CORE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_SIGPENDING": QUEUED_SIGNALS,
    }
    faults = [_set(getattr(resource, name), value) for name, value in wanted.items() if hasattr(resource, name)]
    return "; ".join(filter(None, faults))


def _drop_user() -> str:
    """From root to a user and group that no other process has, so that signals and limits are shared with nobody."""
    pid = os.getpid()
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(64):
        if _libc().prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability)):
            break  # past the last one
    fault = ""
    for user in (OWN_USERS + pid, FALLBACK_USERS + pid % 5_000):
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        except OSError as error:
            fault = fault or f"stays root: {error.strerror}"
            continue
        fault = ""
        break
    return "; ".join(filter(None, [fault, _drop_capabilities()]))


def _drop_capabilities() -> str:
    number = CAPSET.get(os.uname().machine)
    if sys.platform != "linux" or number is None:
        return f"not on {sys.platform} {os.uname().machine}"
    head = ctypes.create_string_buffer(struct.pack("Ii", CAPABILITY_VERSION_3, 0))
    none = ctypes.create_string_buffer(24)  # effective, permitted, inheritable: twice 32 bits of nothing
    return "" if _libc().syscall(number, head, none) == 0 else f"capabilities: {_failed()}"


def _die_with(parent: int) -> str:
    fault = prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)
    return fault


def _landlock() -> str:
    """A domain with no rule in it: no file, no TCP port, and where known no abstract socket and no signal out."""
    if sys.platform != "linux":
        return f"not on {sys.platform}"
    libc = _libc()
    version = libc.syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_CREATE_RULESET_VERSION)
    if version < 1:
        return f"not in this kernel, or switched off ({_failed()})"
    files = (1 << FILE_RIGHTS.get(version, 16)) - 1
    network = 3 if version >= 4 else 0
    scopes = 3 if version >= NEW_ABI else 0
    size = 24 if version >= NEW_ABI else 16 if version >= 4 else 8
    rules = ctypes.create_string_buffer(struct.pack("QQQ", files, network, scopes)[:size], size)
    ruleset = libc.syscall(LANDLOCK_CREATE_RULESET, rules, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return _failed()
    fault = "" if libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0) == 0 else _failed()
    os.close(ruleset)
    return fault


def _seccomp() -> str:
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in NUMBERS or sys.byteorder != "little" or sys.maxsize < 2**32:
        return f"no table for {sys.platform} {machine}"
    code = seccomp.program(machine, os.getpid())
    buffer = ctypes.create_string_buffer(code, len(code))
    head = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))  # struct sock_fprog
    number = NUMBERS[machine]["seccomp"]
    done = _libc().syscall(
        number, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, ctypes.create_string_buffer(head)
    )
    return "" if done == 0 else _failed() if done < 0 else f"thread {done} could not be sealed"

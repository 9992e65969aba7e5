"""The filter, run by an interpreter of its instructions: every call, every machine, without a kernel."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.code_mode import filter as seccomp
from agent.code_mode.syscalls import ABSENT, ALLOWED, AUDIT_ARCH, CLOSED, NUMBERS

PID = 4_321
MACHINES = sorted(NUMBERS)
ALLOW, KILL = "allow", "kill"


def judged(machine: str, name: str | int, *args: int, arch: int | None = None) -> str | int:
    """What the kernel would do with the call: allow, kill, or the error it answers."""
    code = seccomp.program(machine, PID)
    number = NUMBERS[machine][name] if isinstance(name, str) else name
    padded = [*args, *([0] * (6 - len(args)))]
    data = struct.pack(
        "<iIQ6Q",
        number if number < 2**31 else number - 2**32,
        AUDIT_ARCH[machine] if arch is None else arch,
        0,
        *padded,
    )
    at, held = 0, 0
    while True:
        operation, when_true, when_false, k = struct.unpack_from("<HBBI", code, at * 8)
        at += 1
        match operation:
            case 0x20:
                held = struct.unpack_from("<I", data, k)[0]
            case 0x15:
                at += when_true if held == k else when_false
            case 0x35:
                at += when_true if held >= k else when_false
            case 0x45:
                at += when_true if held & k else when_false
            case 0x54:
                held &= k
            case 0x06:
                return ALLOW if k == 0x7FFF0000 else KILL if k == 0x80000000 else k & 0xFFFF
            case _:
                raise AssertionError(f"an instruction that is not known: {operation:#x}")


@pytest.mark.parametrize("machine", MACHINES)
def test_what_computing_needs_is_allowed(machine: str) -> None:
    for name in ALLOWED:
        if name in NUMBERS[machine]:
            assert judged(machine, name) == ALLOW, name


@pytest.mark.parametrize("machine", MACHINES)
@settings(deadline=None)
@given(number=st.integers(0, 2**32 - 1), args=st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_no_number_that_is_not_named_is_ever_allowed(machine: str, number: int, args: list[int]) -> None:
    conditional = set(seccomp.conditions(PID))
    named = {NUMBERS[machine][name] for name in (*ALLOWED, *conditional) if name in NUMBERS[machine]}
    if number not in named:
        assert judged(machine, number, *args) in (errno.EPERM, errno.EACCES, errno.ENOSYS)


@pytest.mark.parametrize("machine", MACHINES)
def test_another_calling_convention_ends_the_process(machine: str) -> None:
    for arch in (0x40000003, 0x40000028, 0):  # i386, 32-bit ARM, none
        assert judged(machine, "read", arch=arch) == KILL


def test_the_x32_numbers_of_allowed_calls_are_refused() -> None:
    for name in ALLOWED:
        if name in NUMBERS["x86_64"]:
            assert judged("x86_64", NUMBERS["x86_64"][name] | 0x40000000) == errno.EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_files_are_closed_and_new_calls_do_not_exist(machine: str) -> None:
    for names, answer in ((CLOSED, errno.EACCES), (ABSENT, errno.ENOSYS)):
        for name in names:
            if name in NUMBERS[machine]:
                assert judged(machine, name) == answer, name


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "args", "answer"),
    [
        ("mmap", (0, 4096, 3), ALLOW),
        ("mmap", (0, 4096, 7), errno.EPERM),
        ("mprotect", (0, 4096, 1), ALLOW),
        ("mprotect", (0, 4096, 5), errno.EPERM),
        ("kill", (PID, 9), ALLOW),
        ("kill", (PID + 1, 9), errno.EPERM),
        ("kill", (0, 9), errno.EPERM),
        ("kill", (2**64 - 1, 9), errno.EPERM),
        ("kill", (2**64 - PID, 9), errno.EPERM),
        ("tgkill", (PID, 7, 9), ALLOW),
        ("tgkill", (7, PID, 9), errno.EPERM),
        ("sendto", (3, 0, 0, 0, 0, 0), ALLOW),
        ("sendto", (3, 0, 0, 0, 1, 0), errno.EPERM),
        ("sendto", (3, 0, 0, 0, 2**32, 0), errno.EPERM),
        ("futex", (0, 0), ALLOW),
        ("futex", (0, 128 | 1), ALLOW),
        ("futex", (0, 128 | 256 | 9), ALLOW),
        ("futex", (0, 6), errno.EPERM),
        ("futex", (0, 128 | 6), errno.EPERM),
        ("futex", (0, 128 | 12), errno.EPERM),
        ("futex", (0, 13), errno.EPERM),
        ("clock_gettime", (0,), ALLOW),
        ("clock_gettime", (11,), ALLOW),
        ("clock_gettime", ((~PID << 3 | 2) & (2**64 - 1),), errno.EPERM),
        ("clock_gettime", ((~PID << 3 | 2) & (2**32 - 1),), errno.EPERM),
        ("clock_nanosleep", (1,), ALLOW),
        ("clock_getres", (2**32 - 6,), errno.EPERM),
        ("sched_getaffinity", (0,), ALLOW),
        ("sched_getaffinity", (PID,), ALLOW),
        ("sched_getaffinity", (PID + 1,), errno.EPERM),
        ("pipe2", (0, 0o2000000), ALLOW),
        ("pipe2", (0, 0o200), errno.EPERM),
        ("socketpair", (1, 1), ALLOW),
        ("socketpair", (2, 1), errno.EPERM),
        ("ioctl", (1, 0x5401), ALLOW),
        ("ioctl", (1, 0x5421), ALLOW),
        ("ioctl", (1, 0x5452), errno.ENOTTY),
        ("prlimit64", (0, 7, 0), ALLOW),
        ("prlimit64", (0, 7, 1), errno.EPERM),
        ("prlimit64", (0, 7, 2**32), errno.EPERM),
        ("prlimit64", (PID, 7, 0), errno.EPERM),
        ("prctl", (15,), ALLOW),
        ("prctl", (4,), errno.EPERM),
        ("newfstatat", (1, 0, 0, 0x1000), ALLOW),
        ("newfstatat", (1, 0, 0, 0), errno.EACCES),
        ("fcntl", (1, 3), ALLOW),
        ("fcntl", (1, 1030), ALLOW),
        ("fcntl", (1, 4, 0o4000), ALLOW),
        ("fcntl", (1, 4, 0o24000), errno.EPERM),
        ("fcntl", (1, 8, PID), errno.EPERM),
        ("fcntl", (1, 10, 9), errno.EPERM),
        ("fcntl", (1, 1026), errno.EPERM),
    ],
)
def testconditions(machine: str, name: str, args: tuple[int, ...], answer: str | int) -> None:
    assert judged(machine, name, *args) == answer


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(KeyError):
        seccomp.program("riscv64", PID)

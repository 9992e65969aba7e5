"""The seccomp program: an allow-list as BPF instructions. Standard library only.

The allow-list is the boundary of code mode: it denies what nobody thought of, too. A call that is not named here
answers EPERM; another architecture's calling convention ends the process.
"""

from __future__ import annotations

import errno
import functools
import struct

from agent.code_mode.syscalls import ABSENT, ALLOWED, AUDIT_ARCH, CLOSED, NUMBERS

# linux/bpf_common.h, linux/seccomp.h
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32_BIT = 0x40000000
_INSTRUCTION = struct.Struct("HBBI")
_OWN_PID = 0x7FFFFFFE  # no process has so high a number

PROT_EXEC, AF_UNIX, AT_EMPTY_PATH, O_ASYNC = 4, 1, 0x1000, 0o20000
TCGETS, FIONBIO, FIONCLEX, FIOCLEX = 0x5401, 0x5421, 0x5450, 0x5451
PR_SET_NAME, PR_GET_NAME = 15, 16
F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC = 0, 1, 2, 3, 4, 1030

O_EXCL = 0o200  # to pipe2: a pipe for notifications of the kernel's
CLOCKS = 16  # numbers of clocks; negative ones are clocks of other processes
# linux/futex.h: wait, wake, requeue, compare and requeue, wake and operate, wait and wake by bits
FUTEX_COMMANDS, FUTEX_COMMAND_MASK = (0, 1, 3, 4, 5, 9, 10), 0x7F

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, k


def program(machine: str, pid: int) -> bytes:
    """The filter for one process as an array of `struct sock_filter`. Raises `KeyError` for an unknown machine."""
    code = bytearray(_template(machine))
    for offset in range(0, len(code), _INSTRUCTION.size):
        operation, when_true, when_false, k = _INSTRUCTION.unpack_from(code, offset)
        if k == _OWN_PID:
            _INSTRUCTION.pack_into(code, offset, operation, when_true, when_false, pid)
    return bytes(code)


@functools.cache
def _template(machine: str) -> bytes:
    """The same for every process, with `_OWN_PID` where its own number belongs: a fork server makes it once."""
    numbers = NUMBERS[machine]
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32_BIT),  # on x86_64 the x32 calls; on aarch64 no call is that high
        _errno(errno.EPERM),
    ]
    for name in ALLOWED:
        if name in numbers:
            code += _when(numbers[name], [(_RETURN, 0, 0, _ALLOW)])
    for names, answer in ((CLOSED, errno.EACCES), (ABSENT, errno.ENOSYS)):
        for name in names:
            if name in numbers:
                code += _when(numbers[name], [_errno(answer)])
    for name, body in conditions(_OWN_PID).items():
        code += _when(numbers[name], body)
    code.append(_errno(errno.EPERM))
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in code)


def conditions(pid: int) -> dict[str, list[Instruction]]:
    """Calls that are allowed with some arguments only."""
    no_exec = _unless_bits(2, PROT_EXEC)
    a_clock = [_argument(0), (_AT_LEAST, 0, 1, CLOCKS), _errno(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]
    return {
        # Without those that lend priority: they take the number of any thread for the owner of a lock.
        "futex": _only(1, *FUTEX_COMMANDS, mask=FUTEX_COMMAND_MASK),
        "clock_gettime": a_clock,
        "clock_getres": a_clock,
        "clock_nanosleep": a_clock,
        "sched_getaffinity": _only(0, 0, pid),  # of another process, it would tell whether there is one
        "pipe2": _unless_bits(1, O_EXCL),
        "mmap": no_exec,
        "mprotect": no_exec,
        "kill": _only(0, pid),
        "tgkill": _only(0, pid),
        "sendto": _only_zero(4),  # on a connected socket; no address
        "socketpair": _only(0, AF_UNIX),
        "ioctl": _only(1, TCGETS, FIONBIO, FIOCLEX, FIONCLEX, otherwise=errno.ENOTTY),
        "prlimit64": _only(0, 0, then=_only_zero(2)),  # reading one's own
        "prctl": _only(0, PR_SET_NAME, PR_GET_NAME),
        # glibc's fstat. Existence and size of a path can be learnt through it, the content of a file can't.
        "newfstatat": _with_bits(3, AT_EMPTY_PATH, otherwise=errno.EACCES),
        # F_SETOWN, F_SETSIG and O_ASYNC together would send a signal of choice to any process of the same user.
        "fcntl": _fcntl(),
    }


def _fcntl() -> list[Instruction]:
    flags = _unless_bits(2, O_ASYNC)
    commands = (F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC)
    return [_argument(1), (_EQUAL, 0, len(flags), F_SETFL), *flags, *_only(1, *commands)]


def _when(number: int, body: list[Instruction]) -> list[Instruction]:
    """Run the body, which must end in a return, for this call; else go on after it."""
    return [(_EQUAL, 0, len(body), number), *body]


def _only(
    argument: int,
    *values: int,
    mask: int = 0,
    then: list[Instruction] | None = None,
    otherwise: int = errno.EPERM,
) -> list[Instruction]:
    """Allow (or go on with `then`) where the low half of the argument, under the mask, is one of the values.

    The arguments compared here are C ints: the kernel itself looks at the low half alone.
    """
    code = [_argument(argument), *([(_AND, 0, 0, mask)] if mask else [])]
    for index, value in enumerate(values):
        code.append((_EQUAL, len(values) - index, 0, value))
    return [*code, _errno(otherwise), *(then or [(_RETURN, 0, 0, _ALLOW)])]


def _only_zero(argument: int) -> list[Instruction]:
    """Allow where the whole argument, a pointer, is null."""
    high = (_LOAD, 0, 0, _ARGUMENTS + 8 * argument + 4)
    return [
        _argument(argument),
        (_EQUAL, 0, 3, 0),
        high,
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        _errno(errno.EPERM),
    ]


def _unless_bits(argument: int, bits: int) -> list[Instruction]:
    return [_argument(argument), (_ANY_BIT, 0, 1, bits), _errno(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]


def _with_bits(argument: int, bits: int, otherwise: int) -> list[Instruction]:
    return [_argument(argument), (_ANY_BIT, 1, 0, bits), _errno(otherwise), (_RETURN, 0, 0, _ALLOW)]


def _argument(index: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)  # the low half: both machines are little endian


def _errno(number: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | number)

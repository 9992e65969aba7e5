"""System call numbers, and which calls a sealed script may make. Standard library only.

The numbers are the kernel's (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h); aarch64
never had the older calls that are missing from its table. Calls with conditions are in `agent.code_mode.filter`.
"""

from __future__ import annotations

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF = 444, 446  # the same everywhere
CAPSET = {"x86_64": 126, "aarch64": 91}

# fmt: off
NUMBERS: dict[str, dict[str, int]] = {
    "x86_64": {
        "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap":
        11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "ioctl": 16, "readv": 19,
        "writev": 20, "select": 23, "sched_yield": 24, "mremap": 25, "madvise": 28, "dup": 32, "nanosleep": 35,
        "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39, "sendto": 44, "recvfrom": 45, "shutdown": 48,
        "getsockname": 51, "getpeername": 52, "socketpair": 53, "exit": 60, "kill": 62, "uname": 63, "fcntl": 72,
        "getcwd": 79, "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "times": 100, "getuid": 102, "getgid":
        104, "geteuid": 107, "getegid": 108, "getppid": 110, "sigaltstack": 131, "gettid": 186, "time": 201,
        "futex": 202, "sched_getaffinity": 204, "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229,
        "clock_nanosleep": 230, "exit_group": 231, "epoll_wait": 232, "epoll_ctl": 233, "tgkill": 234, "newfstatat":
        262, "pselect6": 270, "ppoll": 271, "set_robust_list": 273, "epoll_pwait": 281, "epoll_create1": 291,
        "pipe2": 293, "prlimit64": 302, "getrandom": 318, "rseq": 334, "clone3": 435, "epoll_pwait2": 441,
        "seccomp": 317, "prctl": 157, "openat": 257, "open": 2, "stat": 4, "lstat": 6, "access": 21, "readlink": 89,
        "faccessat": 269, "faccessat2": 439, "statx": 332, "readlinkat": 267, "openat2": 437, "close_range": 436,
        "unlink": 87, "unlinkat": 263, "rename": 82, "renameat2": 316, "mkdir": 83, "mkdirat": 258, "chdir": 80,
    },
    "aarch64": {
        "read": 63, "write": 64, "close": 57, "fstat": 80, "lseek": 62, "mmap": 222, "mprotect": 226, "munmap": 215,
        "brk": 214, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "ioctl": 29, "readv": 65,
        "writev": 66, "sched_yield": 124, "mremap": 216, "madvise": 233, "dup": 23, "nanosleep": 101, "getitimer":
        102, "setitimer": 103, "getpid": 172, "sendto": 206, "recvfrom": 207, "shutdown": 210, "getsockname": 204,
        "getpeername": 205, "socketpair": 199, "exit": 93, "kill": 129, "uname": 160, "fcntl": 25, "getcwd": 17,
        "gettimeofday": 169, "getrusage": 165, "times": 153, "getuid": 174, "getgid": 176, "geteuid": 175,
        "getegid": 177, "getppid": 173, "sigaltstack": 132, "gettid": 178, "futex": 98, "sched_getaffinity": 123,
        "restart_syscall": 128, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115, "exit_group": 94,
        "epoll_ctl": 21, "tgkill": 131, "newfstatat": 79, "pselect6": 72, "ppoll": 73, "set_robust_list": 99,
        "epoll_pwait": 22, "epoll_create1": 20, "pipe2": 59, "prlimit64": 261, "getrandom": 278, "rseq": 293,
        "clone3": 435, "epoll_pwait2": 441, "seccomp": 277, "prctl": 167, "openat": 56, "faccessat": 48,
        "faccessat2": 439, "statx": 291, "readlinkat": 78, "openat2": 437, "close_range": 436, "unlinkat": 35,
        "renameat2": 276, "mkdirat": 34, "chdir": 49,
    },
}
# fmt: on

# What computing needs: memory, open descriptors, clocks, locks, signals to oneself, the end.
ALLOWED = [
    "read",
    "write",
    "munmap",
    "brk",
    "madvise",
    "mremap",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "close",
    "fstat",
    "lseek",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "readv",
    "writev",
    "dup",
    "recvfrom",
    "shutdown",
    "getsockname",
    "getpeername",
    "getpid",
    "gettid",
    "getppid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "uname",
    "getcwd",
    "gettimeofday",
    "time",
    "nanosleep",
    "getrusage",
    "times",
    "sched_yield",
    "close_range",
    "getrandom",
    "sigaltstack",
    "set_robust_list",
    "rseq",
    "exit",
    "exit_group",
    "restart_syscall",
    "getitimer",
    "setitimer",
    "alarm",
    "getrlimit",
]

# glibc tries these first and falls back when told that they don't exist.
ABSENT = ["clone3", "statx", "faccessat2", "openat2"]

# Python says "Permission denied" for these, as it would for a file it may not read.
CLOSED = [
    "openat",
    "open",
    "stat",
    "lstat",
    "access",
    "faccessat",
    "readlink",
    "readlinkat",
    "unlink",
    "unlinkat",
    "rename",
    "renameat2",
    "mkdir",
    "mkdirat",
    "chdir",
]

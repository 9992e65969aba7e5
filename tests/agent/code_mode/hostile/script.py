"""One hostile script and what has to come of it."""

# ruff: noqa: E501  an attempt reads best on one line

from __future__ import annotations

from dataclasses import dataclass, field

from agent.code_mode.host import End

FAILED = frozenset({End.FINISHED, End.FAILED})  # it went on living, whatever it printed
BREACH = "BREACH"  # what a script prints when it got what it must not get
REFUSED = "refused"

PRELUDE = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
ARM = os.uname().machine == "aarch64"
NUMBERS = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "io_uring_setup": (425, 425),
    "io_uring_register": (427, 427), "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "execveat": (322, 281), "execve": (59, 221), "clone": (56, 220), "clone3": (435, 435), "fork": (57, -1),
    "vfork": (58, -1), "userfaultfd": (323, 282), "perf_event_open": (298, 241), "bpf": (321, 280), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "kcmp": (312, 272), "seccomp": (317, 277), "prctl": (157, 167),
    "personality": (135, 92), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262), "inotify_init1": (294, 26), "socket": (41, 198), "sendmsg": (46, 211),
    "sendmmsg": (307, 269), "recvmsg": (47, 212), "shmget": (29, 194), "msgget": (68, 186), "mq_open": (240, 180),
    "tkill": (200, 130), "tgkill": (234, 131), "kill": (62, 129), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "setpriority": (141, 140), "sched_setaffinity": (203, 122), "reboot": (169, 142),
    "init_module": (175, 105), "finit_module": (313, 273), "syslog": (103, 116), "timer_create": (222, 107),
    "statx": (332, 291), "getdents64": (217, 61), "mknodat": (259, 33), "symlinkat": (266, 36), "linkat": (265, 37),
    "fchmodat": (268, 53), "fchownat": (260, 54), "truncate": (76, 45), "utimensat": (280, 88), "setxattr": (188, 5),
    "landlock_create_ruleset": (444, 444), "open_tree": (428, 428), "fsopen": (430, 430), "setresuid": (117, 147),
    "setresgid": (119, 149), "capset": (126, 91), "prlimit64": (302, 261), "setsid": (112, 157), "setpgid": (109, 154),
    "clock_settime": (227, 112), "process_madvise": (440, 440), "pkey_mprotect": (329, 288), "shmat": (30, 196),
    "openat": (257, 56), "openat2": (437, 437), "open": (2, -1), "fcntl": (72, 25), "ioctl": (16, 29),
    "newfstatat": (262, 79), "mprotect": (10, 226), "mmap": (9, 222), "sendfile": (40, 71), "splice": (275, 76),
    "modify_ldt": (154, -1), "arch_prctl": (158, -1), "sendto": (44, 206), "socketpair": (53, 199),
    "pread64": (17, 67), "futex": (202, 98), "clock_gettime": (228, 113), "sched_getaffinity": (204, 123),
    "pipe2": (293, 59), "getpgid": (121, 155), "sched_getscheduler": (145, 120), "wait4": (61, 260), "copy_file_range": (326, 285), "swapon": (167, 224), "acct": (163, 89),
}
def raw(name, *args):
    number = NUMBERS[name][ARM]
    if number < 0:
        raise OSError(errno.ENOSYS, "not on this machine")
    given = [arg if not isinstance(arg, int) else ctypes.c_long(arg) for arg in args]
    result = libc.syscall(ctypes.c_long(number), *given)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def attempt(name, act):
    try:
        got = act()
    except BaseException as error:
        print("refused", name, type(error).__name__, str(error)[:80], flush=True)
    else:
        print("BREACH", name, repr(got)[:200], flush=True)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """`ends` are the ends that are right; `says` must stand in what comes back, `BREACH` and the canary never may.

    In the code, @FILE@ is a readable file with the canary in it, @FOLDER@ a folder anyone may write to, @TCP@, @UDP@,
    @UNIX@ and @ABSTRACT@ are where something listens, @VICTIM@ is a process of the same user. `bare` scripts have no
    prelude. `wall` is the limit in seconds; `cpu` and `memory_mb` are those of the run, where not the usual ones.
    """

    name: str
    code: str
    ends: frozenset[End] = field(default=frozenset({End.FINISHED}))
    says: str = REFUSED
    wall: float = 8.0
    cpu: int = 5
    memory_mb: int = 256
    bare: bool = False

    @property
    def whole(self) -> str:
        return self.code if self.bare else PRELUDE + self.code


def refused(name: str, code: str) -> Script:
    """Every attempt in it must fail."""
    return Script(name=name, code=code)

"""Other processes: none can be signalled, traced, awaited, slowed down or found out about."""

# ruff: noqa: E501  an attempt reads best on one line

from __future__ import annotations

from tests.agent.code_mode.hostile.script import Script, refused

SCRIPTS: tuple[Script, ...] = (
    refused(
        "signals to others",
        """
import signal
for pid in (os.getppid(), @VICTIM@, 1, 0, -1, -os.getppid(), -@VICTIM@):
    for number in (0, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
        attempt(f"kill {pid}", lambda: os.kill(pid, number))
attempt("killpg", lambda: os.killpg(os.getpgid(0), 9))
attempt("killpg 0", lambda: os.killpg(0, 9))
""",
    ),
    refused(
        "signals by other calls",
        """
info = ctypes.create_string_buffer(128)
for pid in (os.getppid(), @VICTIM@):
    attempt("tkill", lambda: raw("tkill", pid, 9))
    attempt("tgkill", lambda: raw("tgkill", pid, pid, 9))
    attempt("queue", lambda: raw("rt_sigqueueinfo", pid, 9, info))
    attempt("tqueue", lambda: raw("rt_tgsigqueueinfo", pid, pid, 9, info))
attempt("pidfd", lambda: raw("pidfd_send_signal", 3, 9, 0, 0))
""",
    ),
    refused(
        "signals with a number that is cut",
        """
for pid in (os.getpid() | 1 << 32, @VICTIM@ | 1 << 32):
    attempt("kill", lambda: raw("kill", pid, 9) if pid & 0xffffffff != os.getpid() else 1/0)
attempt("tgkill", lambda: raw("tgkill", @VICTIM@ | 1 << 40, @VICTIM@, 9))
""",
    ),
    refused(
        "ptrace",
        """
for request in (0, 16, 0x4206):
    for pid in (os.getppid(), @VICTIM@):
        attempt("ptrace", lambda: raw("ptrace", request, pid, 0, 0))
""",
    ),
    refused(
        "a signal by way of the bridge's owner",
        """
import fcntl, signal
for fd in range(0, 8):
    for pid in (os.getppid(), @VICTIM@):
        attempt("owner", lambda: fcntl.fcntl(fd, fcntl.F_SETOWN, pid))
    attempt("signal", lambda: fcntl.fcntl(fd, 10, signal.SIGKILL))
    attempt("async", lambda: fcntl.fcntl(fd, fcntl.F_SETFL, 0o20000))
    attempt("owner ex", lambda: raw("fcntl", fd, 15, ctypes.create_string_buffer(8)))
    attempt("ioctl async", lambda: raw("ioctl", fd, 0x5452, ctypes.byref(ctypes.c_int(1))))
    attempt("ioctl owner", lambda: raw("ioctl", fd, 0x8901, ctypes.byref(ctypes.c_int(os.getppid()))))
""",
    ),
    refused(
        "leases, locks, notes",
        "import fcntl\nfor command in (1024, 1026, 1033, 6, 7, 38): attempt('fcntl', lambda: raw('fcntl', 3, command, ctypes.create_string_buffer(64)))",
    ),
    refused(
        "the parent's priority, limits and processors",
        """
import resource
attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19))
attempt("prlimit", lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (1, 1)))
attempt("prlimit read", lambda: resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE))
attempt("affinity", lambda: os.sched_setaffinity(os.getppid(), [0]))
""",
    ),
    refused(
        "lift the own limits",
        """
import resource
for limit in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
    attempt("setrlimit", lambda: resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
attempt("prlimit64", lambda: raw("prlimit64", 0, 9, (ctypes.c_ulong * 2)(2**63, 2**63), 0))
""",
    ),
    refused(
        "find processes",
        "for pid in (1, os.getppid(), @VICTIM@): attempt('status', lambda: open(f'/proc/{pid}/status').read())",
    ),
    refused("compare with the parent", "attempt('kcmp', lambda: raw('kcmp', os.getpid(), os.getppid(), 1, 0, 0))"),
    refused("advise the parent's memory", "attempt('madvise', lambda: raw('process_madvise', 3, 0, 0, 21, 0))"),
    refused(
        "session and group",
        "attempt('setsid', os.setsid); attempt('setpgid', lambda: os.setpgid(0, 0)); attempt('group', lambda: raw('setpgid', 0, os.getppid()))",
    ),
    refused(
        "become someone else",
        "attempt('uid', lambda: os.setresuid(0, 0, 0)); attempt('gid', lambda: os.setresgid(0, 0, 0)); attempt('groups', lambda: os.setgroups([0]))",
    ),
    Script(
        name="capabilities are gone, also from root",
        code="""
head = (ctypes.c_uint32 * 2)(0x20080522, 0)
attempt("capset", lambda: raw("capset", head, (ctypes.c_uint32 * 6)(*[0xffffffff] * 6)))
""",
    ),
    refused(
        "make itself dumpable again, live on after the parent",
        "attempt('dumpable', lambda: raw('prctl', 4, 1, 0, 0, 0)); attempt('death', lambda: raw('prctl', 1, 0, 0, 0, 0)); attempt('keepcaps', lambda: raw('prctl', 8, 1, 0, 0, 0))",
    ),
    refused(
        "is there such a process",
        """
for pid in (os.getppid(), @VICTIM@):
    attempt("affinity", lambda: raw("sched_getaffinity", pid, 128, ctypes.create_string_buffer(128)))
    attempt("group", lambda: raw("getpgid", pid))
    attempt("scheduler", lambda: raw("sched_getscheduler", pid))
    attempt("wait", lambda: raw("wait4", pid, 0, 1, 0))
    attempt("its clock", lambda: raw("clock_gettime", ~pid << 3 | 2, ctypes.create_string_buffer(16)))
    lock = ctypes.c_uint32(pid)
    attempt("a lock said to be its own", lambda: raw("futex", ctypes.byref(lock), 6, 0, 0, 0, 0))
""",
    ),
)

"""Ways out: programs, new processes, namespaces, and the parts of the kernel that go round a filter."""

# ruff: noqa: E501  an attempt reads best on one line

from __future__ import annotations

from agent.code_mode.host import End
from tests.agent.code_mode.hostile.script import Script, refused

SCRIPTS: tuple[Script, ...] = (
    refused("exec", "attempt('exec', lambda: os.execv('/bin/sh', ['sh', '-c', 'echo BREACH']))"),
    refused(
        "exec with a descriptor",
        "attempt('execveat', lambda: raw('execveat', 0, b'', 0, 0, 0x1000)); attempt('execve', lambda: raw('execve', b'/bin/sh', 0, 0))",
    ),
    refused(
        "system and popen",
        "attempt('popen', lambda: os.popen('echo BREACH').read() or 1/0); attempt('system', lambda: 1/0 if os.system('echo BREACH') else 0)",
    ),
    refused(
        "subprocess",
        "import subprocess; attempt('run', lambda: subprocess.run(['/bin/echo', 'BREACH'])); attempt('shell', lambda: subprocess.check_output('echo BREACH', shell=True))",
    ),
    refused("posix_spawn", "attempt('spawn', lambda: os.posix_spawn('/bin/echo', ['echo', 'BREACH'], {}))"),
    refused("fork", "attempt('fork', os.fork); attempt('forkpty', os.forkpty); attempt('vfork', lambda: raw('vfork'))"),
    refused(
        "clone in all its forms",
        """
for flags in (17, 0x100 | 17, 0x10000000 | 17, 0x20000000, 0x3d0f00, 0x00010f00, 0x8000 | 17):
    attempt("clone", lambda: raw("clone", flags, 0, 0, 0, 0))
attempt("clone3", lambda: raw("clone3", (ctypes.c_uint64 * 11)(), 88))
""",
    ),
    refused(
        "multiprocessing",
        "import multiprocessing\nattempt('process', lambda: multiprocessing.get_context('fork').Process(target=print).start())\nattempt('spawn', lambda: multiprocessing.get_context('spawn').Process(target=print).start())",
    ),
    refused(
        "namespaces",
        "for flags in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80): attempt('unshare', lambda: raw('unshare', flags))\nattempt('setns', lambda: raw('setns', 3, 0))",
    ),
    refused(
        "mounts",
        "attempt('mount', lambda: raw('mount', b'none', b'/tmp', b'tmpfs', 0, 0)); attempt('umount', lambda: raw('umount2', b'/proc', 2)); attempt('pivot', lambda: raw('pivot_root', b'/', b'/')); attempt('tree', lambda: raw('open_tree', -100, b'/', 1)); attempt('fsopen', lambda: raw('fsopen', b'tmpfs', 0))",
    ),
    refused(
        "io_uring",
        "attempt('setup', lambda: raw('io_uring_setup', 8, ctypes.create_string_buffer(120))); attempt('register', lambda: raw('io_uring_register', 3, 0, 0, 0))",
    ),
    refused(
        "bpf, perf, userfaultfd",
        "attempt('bpf', lambda: raw('bpf', 5, ctypes.create_string_buffer(128), 128)); attempt('perf', lambda: raw('perf_event_open', ctypes.create_string_buffer(128), 0, -1, -1, 0)); attempt('fault', lambda: raw('userfaultfd', 1))",
    ),
    refused(
        "executable memory",
        """
import mmap
attempt("mmap", lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC))
page = mmap.mmap(-1, 4096)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
attempt("mprotect", lambda: raw("mprotect", address, 4096, 5))
attempt("pkey", lambda: raw("pkey_mprotect", address, 4096, 5, -1))
attempt("personality", lambda: raw("personality", 0x0400000))
""",
    ),
    refused(
        "another filter or domain",
        "attempt('seccomp', lambda: raw('seccomp', 1, 0, 0)); attempt('old', lambda: raw('prctl', 22, 2, 0, 0, 0)); attempt('landlock', lambda: raw('landlock_create_ruleset', 0, 0, 1))",
    ),
    refused(
        "x32 and calls from the future",
        """
for number in (0x40000000, 0x40000000 + 59, 0x40000000 + 2, 0x40000000 + 520, 600, 1000, 0xffffffff, 2**32 + 2):
    def call():
        if number & 0xffffffff in (0x40000000,) and ARM:
            raise OSError
        result = libc.syscall(ctypes.c_long(number), b"/etc/passwd", 0, 0)
        if result == -1:
            raise OSError(ctypes.get_errno(), "refused")
        return result
    attempt(hex(number), call)
""",
    ),
    Script(
        name="every call that is not on the list",
        code="""
from_list = set(@ALLOWED@)
passed = []
for number in range(0, 480):
    if number in from_list or (not ARM and number in (335, 336)):  # uretprobe, uprobe: the kernel ends who calls them
        continue
    ctypes.set_errno(0)
    if libc.syscall(ctypes.c_long(number), *[ctypes.c_long(0)] * 6) != -1 or ctypes.get_errno() not in (1, 13, 38):
        passed.append(number)
print("BREACH" if passed else "refused", passed)
""",
    ),
    Script(
        name="the calling convention of 32 bits ends the process",
        code="""
import mmap
print("refused: no memory can be made executable for it")
attempt("code", lambda: mmap.mmap(-1, 4096, prot=7))
""",
    ),
    refused(
        "kernel modules, reboot, swap, accounting",
        "attempt('module', lambda: raw('init_module', 0, 0, b'')); attempt('fmodule', lambda: raw('finit_module', 0, b'', 0)); attempt('reboot', lambda: raw('reboot', 0, 0, 0, 0)); attempt('swap', lambda: raw('swapon', b'/x', 0)); attempt('acct', lambda: raw('acct', 0))",
    ),
    refused("the clock", "import time; attempt('set', lambda: time.clock_settime(time.CLOCK_REALTIME, 0))"),
    refused(
        "ldt and segment tricks",
        "attempt('ldt', lambda: raw('modify_ldt', 0, 0, 0)); attempt('prctl', lambda: raw('arch_prctl', 0x1012, 0))",
    ),
    Script(
        name="the stand-in for an import is only that",
        code="""
import importlib, sys
sys.path.append("@FOLDER@"); sys.meta_path.pop()
attempt("import", lambda: importlib.import_module("written_by_script"))
attempt("builtin", lambda: importlib.import_module("pandas"))
""",
    ),
    Script(
        name="a crash of the interpreter is an end like any other",
        code="print('refused', flush=True); ctypes.string_at(0)",
        ends=frozenset({End.SIGNAL}),
    ),
    Script(
        name="the C stack runs over",
        code="""
print("refused", flush=True)
sys.setrecursionlimit(10**9)
class A:
    def __getattr__(self, name): return getattr(self, name + "x")
try:
    A().a
except BaseException as error:
    print(type(error).__name__)
""",
        ends=frozenset({End.SIGNAL, End.FINISHED, End.MEMORY, End.CPU, End.FAILED}),
    ),
    refused(
        "rare corners of allowed calls",
        """
word = ctypes.c_uint32(0)
for command in (6, 7, 8, 11, 12, 13, 128 | 6, 2, 127):
    attempt("futex", lambda: raw("futex", ctypes.byref(word), command, 0, 0, ctypes.byref(word), 0))
attempt("a notification pipe", lambda: raw("pipe2", (ctypes.c_int * 2)(), 0o200))
""",
    ),
)

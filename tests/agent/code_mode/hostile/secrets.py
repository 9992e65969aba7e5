"""Reading what the worker knows: environment, memory, credentials, the bridge's other side."""

from __future__ import annotations

from tests.agent.code_mode.hostile.script import Script, refused

SCRIPTS: tuple[Script, ...] = (
    Script(
        name="the environment holds constants only",
        code="print(sorted(os.environ)); print('refused by absence')",
        says="['LANG', 'MALLOC_ARENA_MAX', 'PATH', 'TZ']",
    ),
    Script(
        name="the C library's environment holds no more",
        code="""
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
index = 0
while environ[index]:
    print(environ[index].decode()); index += 1
print("refused by absence")
""",
    ),
    refused("own environment through proc", "attempt('read', lambda: open('/proc/self/environ').read())"),
    refused("parent's environment", "attempt('read', lambda: open(f'/proc/{os.getppid()}/environ').read())"),
    refused("parent's command line", "attempt('read', lambda: open(f'/proc/{os.getppid()}/cmdline').read())"),
    refused("victim's environment", "attempt('read', lambda: open('/proc/@VICTIM@/environ').read())"),
    refused("parent's memory file", "attempt('open', lambda: os.open(f'/proc/{os.getppid()}/mem', os.O_RDWR))"),
    refused(
        "parent's memory by process_vm_readv",
        """
buffer = ctypes.create_string_buffer(64)
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
here = Vector(ctypes.addressof(buffer), 64); there = Vector(id(None), 64)
for pid in (os.getppid(), @VICTIM@):
    attempt("read", lambda: raw("process_vm_readv", pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
    attempt("write", lambda: raw("process_vm_writev", pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
""",
    ),
    refused("the kernel's keyring", "attempt('keyctl', lambda: raw('keyctl', 0, -3, 0))"),
    refused(
        "keys added and asked for",
        """
attempt("add", lambda: raw("add_key", b"user", b"x", b"y", 1, -3))
attempt("ask", lambda: raw("request_key", b"user", b"x", 0, -3))
""",
    ),
    refused(
        "a service account's token, ssh and cloud credentials",
        """
for path in ("/var/run/secrets/kubernetes.io/serviceaccount/token", "/root/.ssh/id_rsa", "/root/.aws/credentials",
             "/root/.kube/config", os.path.expanduser("~/.netrc"), "/run/secrets/x"):
    attempt(path, lambda: open(path).read())
""",
    ),
    Script(
        name="what the interpreter left in memory",
        code="""
import gc
found = [one for one in gc.get_objects() if isinstance(one, (str, bytes, dict)) and "canary-" + "value" in repr(one)]
print("refused", len(found)) if not found else print("BREACH", found)
""",
    ),
    Script(
        name="inherited descriptors are three and the bridge",
        code="""
import stat
kinds = {}
for fd in range(64):
    try:
        kinds[fd] = os.fstat(fd).st_mode
    except OSError:
        pass
files = [fd for fd, mode in kinds.items() if stat.S_ISREG(mode) or stat.S_ISDIR(mode)]
sockets = [fd for fd, mode in kinds.items() if stat.S_ISSOCK(mode)]
print("BREACH" if files or len(sockets) != 1 or len(kinds) != 4 else "refused", kinds)
""",
    ),
    refused(
        "the parent's descriptors by pidfd",
        """
attempt("open", lambda: raw("pidfd_open", os.getppid(), 0))
attempt("get", lambda: raw("pidfd_getfd", 3, 0, 0))
""",
    ),
    Script(
        name="who is on the other side of the bridge can't be asked",
        code="""
import socket
for fd in range(3, 10):
    try:
        end = socket.socket(fileno=fd)
    except OSError as error:
        print("refused", error)
        continue
    attempt("peercred", lambda: end.getsockopt(socket.SOL_SOCKET, 17, 12)); end.detach()
""",
    ),
    refused("kernel log", "attempt('syslog', lambda: raw('syslog', 3, ctypes.create_string_buffer(100), 100))"),
)

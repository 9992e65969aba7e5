"""The file system: nothing can be opened, listed, made, changed or followed."""

# ruff: noqa: E501  an attempt reads best on one line

from __future__ import annotations

from tests.agent.code_mode.hostile.script import Script, refused

SCRIPTS: tuple[Script, ...] = (
    refused("read a file", "attempt('read', lambda: open('@FILE@').read())"),
    refused("read a system file", "attempt('read', lambda: open('/etc/passwd').read())"),
    refused("write a file", "attempt('write', lambda: open('@FOLDER@/written', 'w').write('x'))"),
    refused(
        "write to temporary places",
        """
import tempfile
attempt("temporary", lambda: tempfile.TemporaryFile())
attempt("named", lambda: tempfile.NamedTemporaryFile(dir="@FOLDER@"))
attempt("shm", lambda: open("/dev/shm/rootcaused-x", "w"))
""",
    ),
    refused(
        "list folders",
        """
for path in ("/", "@FOLDER@", "/proc", "."):
    attempt(path, lambda: os.listdir(path))
    attempt(path, lambda: next(os.scandir(path)))
""",
    ),
    refused(
        "raw open calls",
        """
for flags in (0, os.O_PATH, os.O_DIRECTORY, os.O_TMPFILE | os.O_RDWR):
    attempt("openat", lambda: raw("openat", -100, b"@FILE@", flags, 0))
    attempt("openat folder", lambda: raw("openat", -100, b"@FOLDER@", flags, 0))
attempt("open", lambda: raw("open", b"@FILE@", 0, 0))
attempt("openat2", lambda: raw("openat2", -100, b"@FILE@", ctypes.create_string_buffer(24), 24))
""",
    ),
    refused(
        "open by handle",
        """
attempt("name", lambda: raw("name_to_handle_at", -100, b"@FILE@", ctypes.create_string_buffer(200), ctypes.byref(ctypes.c_int()), 0))
attempt("open", lambda: raw("open_by_handle_at", 3, ctypes.create_string_buffer(200), 0))
""",
    ),
    refused(
        "metadata",
        """
attempt("stat", lambda: os.stat("@FILE@"))
attempt("lstat", lambda: os.lstat("@FILE@"))
attempt("statx", lambda: raw("statx", -100, b"@FILE@", 0, 0xfff, ctypes.create_string_buffer(256)))
attempt("readlink", lambda: os.readlink("/proc/self/exe"))
attempt("statvfs", lambda: os.statvfs("/"))
""",
    ),
    refused("access", "attempt('access', lambda: os.access('@FILE@', os.R_OK) or 1/0)"),
    refused(
        "change what is there",
        """
attempt("chmod", lambda: os.chmod("@FILE@", 0o777))
attempt("chown", lambda: os.chown("@FILE@", os.getuid(), os.getgid()))
attempt("utime", lambda: os.utime("@FILE@"))
attempt("truncate", lambda: os.truncate("@FILE@", 0))
attempt("setxattr", lambda: os.setxattr("@FILE@", "user.x", b"y"))
attempt("remove", lambda: os.remove("@FILE@"))
attempt("rename", lambda: os.rename("@FILE@", "@FOLDER@/moved"))
""",
    ),
    refused(
        "make links, folders, nodes",
        """
attempt("symlink", lambda: os.symlink("/etc/shadow", "@FOLDER@/link"))
attempt("link", lambda: os.link("@FILE@", "@FOLDER@/hard"))
attempt("mkdir", lambda: os.mkdir("@FOLDER@/made"))
attempt("fifo", lambda: os.mkfifo("@FOLDER@/fifo"))
attempt("node", lambda: os.mknod("@FOLDER@/node", 0o600 | 0o020000, os.makedev(1, 3)))
""",
    ),
    refused(
        "standard modules that open files for one",
        """
import importlib, pathlib, shutil, sqlite3, zipfile, mmap
attempt("pathlib", lambda: pathlib.Path("@FILE@").read_text())
attempt("copy", lambda: shutil.copy("@FILE@", "@FOLDER@/copy"))
attempt("sqlite", lambda: sqlite3.connect("@FOLDER@/db").execute("create table t(x)"))
attempt("zip", lambda: zipfile.ZipFile("@FOLDER@/z.zip", "w"))
""",
    ),
    refused(
        "load a library",
        "attempt('dlopen', lambda: ctypes.CDLL('libm.so.6.not.loaded.yet')); attempt('path', lambda: ctypes.CDLL('@FILE@'))",
    ),
    refused(
        "watch files",
        "attempt('inotify', lambda: raw('inotify_init1', 0)); attempt('fanotify', lambda: raw('fanotify_init', 0, 0))",
    ),
    refused(
        "a file in memory",
        """
attempt("memfd", lambda: raw("memfd_create", b"x", 0))
attempt("secret", lambda: raw("memfd_secret", 0))
""",
    ),
    refused(
        "leave the root or the folder",
        "attempt('chroot', lambda: os.chroot('/tmp')); attempt('chdir', lambda: os.chdir('/tmp'))",
    ),
    refused(
        "standard input is the null device",
        """
attempt("read", lambda: os.read(0, 1) or 1/0)
""",
    ),
    Script(
        name="the content of a path can't be had through the call that glibc uses for fstat",
        code="""
buffer = ctypes.create_string_buffer(256)
attempt("without the flag", lambda: raw("newfstatat", -100, b"@FILE@", buffer, 0))
""",
    ),
    refused(
        "shared memory and queues of the system",
        """
attempt("shmget", lambda: raw("shmget", 0, 4096, 0o1600))
attempt("shmat", lambda: raw("shmat", 0, 0, 0))
attempt("msgget", lambda: raw("msgget", 0, 0o1600))
attempt("mq_open", lambda: raw("mq_open", b"x", 0o102, 0o600, 0))
""",
    ),
)

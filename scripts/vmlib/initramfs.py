# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's files for a boot: its bare image, initramfs, module index."""

import glob
import hashlib
import lzma
import os
import shutil
import stat
import struct
import subprocess
import tempfile

from . import paths

# What the initramfs loads, each after what it depends on. The first group
# reaches the shared root; the second could come from there, but loads faster
# from memory.
MODULES = """
    virtio_pci virtio_console virtio_net 9pnet_virtio 9p overlay
    crc32_generic crc32-pclmul dummy rdma_rxe ib_uverbs rdma_ucm
""".split()


class Error(Exception):
    pass


class Kernel:
    """A kernel of scripts/kernel."""

    def __init__(self, name):
        fetched = subprocess.run(
            [os.path.join(paths.SCRIPTS, "kernel"), "fetch", name],
            stdout=subprocess.PIPE, text=True, check=False)
        if fetched.returncode:
            raise Error(f"no kernel '{name}', see above")
        self.name = name
        self.dir = os.path.realpath(fetched.stdout.strip())
        with open(os.path.join(self.dir, "release"), encoding="ascii") as file:
            self.release = file.read().strip()
        self.modules = os.path.join(self.dir, "lib/modules", self.release)
        # User Mode Linux: a program of the host
        self.uml = os.path.exists(os.path.join(self.dir, "linux"))

    def image(self):
        """The ELF image, which QEMU enters directly: decompressing it under
        emulation takes longer than the rest of the boot. Falls back to vmlinuz."""
        if self.uml:
            return os.path.join(self.dir, "linux")
        bare = os.path.join(self.dir, "vmlinux")
        if os.path.exists(bare):
            return bare
        packed = os.path.join(self.dir, "vmlinuz")
        with open(packed, "rb") as file:
            data = file.read()
        setup = ((data[0x1f1] or 4) + 1) * 512
        offset, length = struct.unpack_from("<II", data, 0x248)
        try:
            image = lzma.LZMADecompressor().decompress(
                data[setup + offset:setup + offset + length])
        except lzma.LZMAError:
            return packed
        if image[:4] != b"\x7fELF":
            return packed
        write(bare, image)
        return bare

    def own_modules(self):
        """The modules of this checkout that were built for this kernel."""
        return sorted(glob.glob(
            os.path.join(paths.BUILD, "kmod", self.name, "*.ko")))

    def module_files(self, wanted):
        """Files of the modules and of what they need, in the order to load."""
        needs, by_name = {}, {}
        with open(os.path.join(self.modules, "modules.dep"),
                  encoding="ascii") as file:
            for line in file:
                path, _, deps = line.partition(":")
                needs[path] = deps.split()
                by_name[module_name(path)] = path
        order = []
        for name in wanted:
            path = by_name.get(module_name(name))
            if path:        # else built in, or not of this kernel
                for each in [*reversed(needs[path]), path]:
                    if each not in order:
                        order.append(each)
        return [os.path.join(self.modules, path) for path in order]

    def index(self):
        """A directory with a module index that knows our own modules too; it
        is laid over the kernel's. None when there are none."""
        ours = self.own_modules()
        if not ours:
            return None
        digest = hashlib.sha256(self.dir.encode())
        for path in ours:
            with open(path, "rb") as file:
                digest.update(os.path.basename(path).encode() + file.read())
        base = os.path.join(paths.cache(), "modules")
        final = os.path.join(base, digest.hexdigest()[:16])
        if os.path.isdir(final):
            os.utime(final)
            return final
        os.makedirs(base, exist_ok=True)
        forget_old(base)
        work = tempfile.mkdtemp(prefix=".", dir=base)
        tree = os.path.join(work, "lib/modules", self.release)
        os.makedirs(os.path.join(tree, "extra"))
        for entry in os.listdir(self.modules):
            if entry == "kernel":
                os.symlink(os.path.join(self.modules, entry),
                           os.path.join(tree, entry))
            elif entry in ("modules.order", "modules.builtin",
                           "modules.builtin.modinfo"):
                shutil.copy(os.path.join(self.modules, entry), tree)
        for path in ours:
            shutil.copy(path, os.path.join(tree, "extra"))
        subprocess.run(["depmod", "-b", work, self.release], check=True,
                       env={**os.environ, "PATH": tool_path()})
        os.unlink(os.path.join(tree, "kernel"))
        os.chmod(tree, 0o755)
        try:
            os.rename(tree, final)
        except OSError:
            if not os.path.isdir(final):
                raise
        shutil.rmtree(work)
        return final


def module_name(path):
    return os.path.basename(path).split(".")[0].replace("-", "_")


def tool_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def forget_old(base, keep=8):
    entries = sorted(glob.glob(os.path.join(base, "[0-9a-f]*")),
                     key=os.path.getmtime, reverse=True)
    for path in entries[keep:]:
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def write(path, data):
    """Writes a file that others may look for meanwhile."""
    fd, name = tempfile.mkstemp(prefix=".", dir=os.path.dirname(path))
    with os.fdopen(fd, "wb") as file:
        file.write(data)
    os.chmod(name, 0o644)
    os.rename(name, path)


class Archive:
    """A cpio archive of the kind that the kernel unpacks."""

    def __init__(self):
        self.parts = []
        self.inode = 0
        self.known = set()

    def entry(self, name, mode, data=b"", device=(0, 0)):
        if name in self.known:
            return
        self.known.add(name)
        self.inode += 1
        raw = name.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device,
                  len(raw), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields)
        for part in (head + raw, data):
            self.parts += [part, b"\0" * (-len(part) % 4)]

    def directory(self, name):
        name = name.strip("/")
        if name and name not in self.known:
            self.directory(os.path.dirname(name))
            self.entry(name, stat.S_IFDIR | 0o755)

    def data(self, name, data, mode=0o644):
        name = name.strip("/")
        self.directory(os.path.dirname(name))
        self.entry(name, stat.S_IFREG | mode, data)

    def link(self, name, target):
        name = name.strip("/")
        self.directory(os.path.dirname(name))
        self.entry(name, stat.S_IFLNK | 0o777, target.encode())

    def file(self, path, name=None):
        """A file, as what and where it is unless named; links are followed."""
        with open(path, "rb") as file:
            data = file.read()
        mode = 0o755 if os.access(path, os.X_OK) else 0o644
        self.data(name or path, data, mode)

    def bytes(self):
        self.entry("TRAILER!!!", 0)
        data = b"".join(self.parts)
        return data + b"\0" * (-len(data) % 512)


def unpacked(path):
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(".xz"):
        return lzma.decompress(data)
    return data


def base(kernel):
    """The part of the initramfs that stays the same; kept by content."""
    files = kernel.module_files(MODULES)
    busybox = shutil.which("busybox", path="/bin:/usr/bin")
    if not busybox:
        raise Error("no busybox; 'scripts/deps vm' installs it")
    init = os.path.join(paths.GUEST, "init")

    digest = hashlib.sha256(kernel.dir.encode())
    for path in [busybox, init, os.path.realpath(__file__)]:
        with open(path, "rb") as file:
            digest.update(file.read())
    folder = os.path.join(paths.cache(), "initramfs")
    os.makedirs(folder, exist_ok=True)
    final = os.path.join(folder, digest.hexdigest()[:16] + ".cpio")
    if os.path.exists(final):
        os.utime(final)
        return final

    archive = Archive()
    for name in "proc sys dev run root share tmp".split():
        archive.directory(name)
    archive.entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    archive.file(busybox, "bin/busybox")
    archive.file(init, "init")
    order = []
    for path in files:
        name = module_name(path) + ".ko"
        archive.data("modules/" + name, unpacked(path))
        order.append(name)
    archive.data("modules/order", "".join(f"{n}\n" for n in order).encode())
    forget_old(folder)
    write(final, archive.bytes())
    return final

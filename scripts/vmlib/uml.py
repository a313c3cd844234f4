# SPDX-License-Identifier: GPL-2.0-only
"""A machine that is a process: User Mode Linux instead of QEMU.

Its lines to the host are sockets that the process inherits: serial lines for
what scripts write and ask, a device that hands over whole frames for the link.
"""

import os
import resource
import signal
import socket
import struct
import subprocess

from . import accel, control, relay
from .machine import MTU, Machine

MCONSOLE = struct.Struct("=III512s")
MCONSOLE_MAGIC, MCONSOLE_VERSION = 0xCAFEBABE, 2
LINK_BUFFER = 1 << 20


def prepare():
    """In the child: a panic aborts, and needs no core file for that."""
    accel.die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Link(relay.End):
    """A plug that takes frames as datagrams, without a header."""

    def pair(self):
        self.close()
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.setblocking(False)
        for sock in (self.sock, theirs):
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                sock.setsockopt(socket.SOL_SOCKET, option, LINK_BUFFER)
        self.relay.loop.watch(self.sock, self.receive)
        return theirs

    def receive(self):
        try:
            while self.sock:
                data = self.sock.recv(1 << 16)
                if not data:
                    break
                self.relay.carry(self, relay.HEADER.pack(len(data)) + data)
        except BlockingIOError:
            pass
        except OSError:
            self.close()
        self.other.flush()

    def flush(self):
        """What the machine does not take in time is dropped, as on a wire."""
        while self.sock and self.output:
            frame = self.output.popleft()
            self.output_bytes -= len(frame)
            try:
                self.sock.send(frame[relay.HEADER.size:])
            except BlockingIOError:
                pass
            except OSError:
                self.close()


class UmlMachine(Machine):
    PORTS = ("out", "ctl0", "ctl1", "ctl2", "ctl3")

    def netdev(self):
        return "dummy0" if self.opts.machines == 1 else "vec0"

    def lines(self):
        """What is behind each serial line, in their order."""
        return [self.out, *self.control, *([self.tty] if self.tty else [])]

    def arguments(self, lines, link):
        opts = self.opts
        args = [self.session.kernel.image(), f"mem={opts.mem}M", f"ncpus={opts.cpus}",
                "seccomp=auto", f"uml_dir={self.session.dir}", f"umid={self.name}",
                f"initrd={self.initrd()}", "con=null", "con0=null,fd:1", "ssl=null"]
        args += [f"ssl{n}=fd:{sock.fileno()}" for n, sock in enumerate(lines)]
        if link:
            args.append(f"vec0:transport=fd,fd={link.fileno()},mtu={MTU},"
                        f"mac=52:54:00:77:00:0{1 + 'ab'.index(self.name)}")
        args += ["console=tty0", "loglevel=5", "panic=-1", "oops=panic",
                 "printk.devkmsg=on"]
        return args + opts.append.split()

    def launch(self, errors):
        lines = [port.pair() for port in self.lines()]
        link = None
        if self.session.relay:
            link = self.session.relay.ends[self.name].pair()
        passed = [*lines, *([link] if link else [])]
        with open(self.console, "ab") as console:
            process = subprocess.Popen(
                self.arguments(lines, link), stdin=subprocess.DEVNULL,
                stdout=console, stderr=console, start_new_session=True,
                pass_fds=[sock.fileno() for sock in passed], preexec_fn=prepare)
        for sock in passed:
            sock.close()
        return process

    def stop(self):
        # Its programs are processes of their own, and hold the lines open, too.
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def ended(self):
        self.stop()
        super().ended()

    def set_carrier(self, up):
        raise control.Refused("link down and up need a machine of QEMU")

    def tell_blocked(self):
        self.mconsole("sysrq w")

    def mconsole(self, words):
        """A command of the management console; the answer is not waited for."""
        message = MCONSOLE.pack(MCONSOLE_MAGIC, MCONSOLE_VERSION, len(words),
                                words.encode())
        path = os.path.join(self.session.dir, self.name, "mconsole")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            try:
                sock.bind(self.path(f"mc{self.restarts}"))
                sock.sendto(message, socket.MSG_DONTWAIT, path)
            except OSError:
                pass

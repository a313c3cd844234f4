# SPDX-License-Identifier: GPL-2.0-only
"""One virtual machine: its QEMU, and the sockets to what runs inside."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import time

from . import accel, console, initramfs, paths

CONTROL_PORTS = 4
MTU = 4200      # room for rxe's largest packet: 4096 bytes and its headers


def address(name):
    return f"10.77.0.{1 + 'ab'.index(name)}"


def address6(name):
    return f"fd77::{1 + 'ab'.index(name)}"


class Port:
    """A socket of ours that QEMU connects to, or User Mode Linux inherits."""

    def __init__(self, loop, path, received, closed=None):
        self.loop, self.path = loop, path
        self.received, self.closed = received, closed
        self.sock = None
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(1)
        loop.watch(self.listener, self.accept)

    def accept(self):
        self.close()
        self.sock = self.listener.accept()[0]
        self.loop.watch(self.sock, self.read)

    def pair(self):
        """The other end of a connection that is there already."""
        self.close()
        self.sock, theirs = socket.socketpair()
        self.loop.watch(self.sock, self.read)
        return theirs

    def read(self):
        try:
            data = self.sock.recv(1 << 16)
        except OSError:
            data = b""
        if data:
            self.received(data)
            return
        self.close()
        if self.closed:
            self.closed()

    def send(self, data):
        if self.sock:
            try:
                self.sock.sendall(data)
            except OSError:
                pass

    def close(self):
        if self.sock:
            self.loop.forget(self.sock)
            self.sock.close()
            self.sock = None

    def drain(self):
        """What has come in already, when the other side is gone."""
        while self.sock:
            self.read()


class Lines:
    """Calls back with each whole line."""

    def __init__(self, callback):
        self.callback = callback
        self.rest = b""

    def __call__(self, data):
        *whole, self.rest = (self.rest + data).split(b"\n")
        for line in whole:
            self.callback(line.decode("utf-8", "replace"))


class Machine:
    """Here with QEMU. States: running, finished (the script has ended; the machine stays up
    for its peer), off, killed. A killed machine counts for nothing."""

    PORTS = ()      # names of the serial lines, where QEMU does not tell them

    def __init__(self, session, name):
        self.session, self.name = session, name
        self.opts, self.loop = session.opts, session.loop
        self.console = os.path.join(session.dir, f"{name}.console")
        self.state = "off"
        self.status = None          # of the script
        self.restarts = 0
        self.process = None
        self.tail = b""
        self.up_after = None
        self.started = 0.0
        self.out = Port(self.loop, self.path("out"), self.output)
        self.qmp = Port(self.loop, self.path("qmp"), lambda data: None)
        self.control = []
        for number in range(CONTROL_PORTS):
            self.control.append(self.control_port(number))
        self.tty = None
        self.exit_mark = re.compile(
            rb"\x1eexit " + session.nonce.encode() + rb" (\d+)\x1e\n?")

    def path(self, what):
        return os.path.join(self.session.dir, f"{self.name}.{what}")

    def control_port(self, number):
        port = Port(self.loop, self.path(f"ctl{number}"), None)
        port.received = Lines(
            lambda line: self.session.control.request(self, port, line))
        return port

    # --- start ---

    def netdev(self):
        return "dummy0" if self.opts.machines == 1 else "eth0"

    def environment(self):
        opts, name = self.opts, self.name
        peer = "b" if name == "a" else "a"
        own = self.session.kernel.own_modules()
        module = next((path for path in own if path.endswith("/kdirect.ko")),
                      os.path.join(paths.BUILD, "kmod", opts.kernel, "kdirect.ko"))
        mode, command = "idle", []
        if opts.command == "run":
            mode = "script"
            runner = [] if os.access(opts.script, os.X_OK) else ["bash"]
            command = [*runner, opts.script, *opts.args]
        elif opts.machine == name:
            mode = "shell"
        columns, rows = 80, 24
        if mode == "shell":
            columns, rows = shutil.get_terminal_size((columns, rows))
        exported = {
            "MACHINE": name,
            "MACHINES": opts.machines,
            "ADDR_A": address("a"), "ADDR_B": address("b"),
            "ADDR6_A": address6("a"), "ADDR6_B": address6("b"),
            "ADDR": address(name), "ADDR6": address6(name),
            "PEER": address(peer), "PEER6": address6(peer),
            "NETDEV": self.netdev(),
            "RXE": "rxe0",
            "RESTARTED": 1 if self.restarts else 0,
            "VM_KERNEL": opts.kernel,
            "KDIRECT_TOP": paths.TOP,
            "KDIRECT_KO": module,
            "VM_ACCEL": "icount" if opts.icount else opts.accel,
        }
        if mode == "shell":
            exported["TERM"] = os.environ.get("TERM", "dumb")
        internal = {
            "VM_MODE": mode,
            "VM_CLOSED": 1 if opts.icount else "",
            "VM_PORTS": " ".join(self.PORTS),
            "VM_NONCE": self.session.nonce,
            "VM_MTU": MTU,
            "VM_SCRIPT_DIR": os.path.dirname(opts.script or paths.TOP),
            "VM_KERNEL_DIR": self.session.kernel.dir,
            "VM_MODULE_INDEX": self.session.module_index or "",
            "VM_HUNG_TASK_SECONDS": self.session.hung_task_seconds,
            "VM_CWD": os.getcwd(),
            "VM_ROWS": rows, "VM_COLUMNS": columns,
        }
        lines = [f"export {key}={shlex.quote(str(value))}"
                 for key, value in exported.items()]
        lines += [f"{key}={shlex.quote(str(value))}"
                  for key, value in internal.items()]
        # An array, for bash; busybox's shell reads the file too.
        words = " ".join(shlex.quote(word) for word in command)
        lines.append(f"[ -z \"$BASH\" ] || eval {shlex.quote(f'VM_COMMAND=({words})')}")
        return "\n".join(lines).encode() + b"\n"

    def initrd(self):
        archive = initramfs.Archive()
        archive.data("vm/env", self.environment(), 0o600)
        with open(self.session.base, "rb") as file:
            data = file.read()
        path = self.path("initrd")
        with open(path, "wb") as file:
            file.write(data + self.session.closure + archive.bytes())
        return path

    def arguments(self):
        opts, session = self.opts, self.session
        words = ["console=ttyS0", "loglevel=5", "panic=-1", "oops=panic",
                 "printk.devkmsg=on", "net.ifnames=0", "no_timer_check"]
        if opts.accel == "tcg":
            # Emulated CPUs stand still while the host runs something else: a TSC that
            # is calibrated meanwhile runs several times too fast. The HPET does not.
            # (With --icount the TSC counts instructions, and is right.)
            words += ["tsc=reliable" if opts.icount else "clocksource=hpet",
                      "watchdog_thresh=30",
                      "rcupdate.rcu_cpu_stall_timeout=60"]
        if opts.append:
            words.append(opts.append)
        # Notifications handled by another thread of QEMU come at random times.
        same = ",ioeventfd=off" if opts.icount else ""
        args = [accel.QEMU, "-name", f"kdirect-{self.name}", "-M", "q35",
                *session.accel_args, "-smp", str(opts.cpus), "-m", str(opts.mem),
                "-nodefaults", "-no-user-config", "-display", "none",
                "-no-reboot", *accel.firmware(session.kernel),
                "-kernel", session.kernel.image(), "-initrd", self.initrd(),
                "-append", " ".join(words),
                "-chardev", f"file,id=console,path={self.console},append=on",
                "-serial", "chardev:console",
                "-qmp", f"unix:{self.path('qmp')}",
                "-device", f"virtio-serial-pci,max_ports=16{same}"]
        ports = [("out", self.out)]
        ports += [(f"ctl{n}", port) for n, port in enumerate(self.control)]
        for number, (name, port) in enumerate(ports, 1):
            args += ["-chardev", f"socket,id={name},path={port.path}",
                     "-device", f"virtserialport,nr={number},chardev={name},name={name}"]
        if self.tty:
            args += ["-chardev", f"socket,id=tty,path={self.tty.path}",
                     "-device", "virtconsole,nr=9,chardev=tty"]
        for plugin in opts.plugin:
            args += ["-plugin", plugin]
        if not opts.icount:
            args += ["-fsdev", "local,id=root,path=/,security_model=none,"
                     "readonly=on,multidevs=remap",
                     "-device", "virtio-9p-pci,fsdev=root,mount_tag=root"]
        if opts.machines == 2:
            args += ["-netdev", f"stream,id=net,server=off,addr.type=unix,"
                     f"addr.path={self.path('net')}",
                     "-device", "virtio-net-pci,netdev=net,id=nic,romfile=,"
                     f"mac=52:54:00:77:00:0{1 + 'ab'.index(self.name)}"]
        return args

    def start(self):
        self.state, self.status, self.tail = "running", None, b""
        self.started = time.monotonic()
        with open(self.path("qemu"), "ab") as errors:
            self.process = self.launch(errors)
        self.loop.on_exit(self.process.pid, self.ended)

    def launch(self, errors):
        # Not in our process group: Ctrl-C reaches us, and we end it.
        return subprocess.Popen(
            self.arguments(), stdin=subprocess.DEVNULL, stdout=errors,
            stderr=errors, start_new_session=True,
            preexec_fn=accel.die_with_parent)

    def restart(self):
        self.restarts += 1
        if self.state in ("running", "finished"):
            self.kill("restarting")     # and ended() starts it
        elif self.process.poll() is not None:
            self.start()
        else:
            self.state = "restarting"

    # --- while it runs ---

    def command(self, verb, **arguments):
        """A QMP command; the answer is not waited for."""
        message = {"execute": verb}
        if arguments:
            message["arguments"] = arguments
        self.qmp.send(b'{"execute":"qmp_capabilities"}' +
                      json.dumps(message).encode())

    def tell_blocked(self):
        """The kernel's list of blocked tasks, into its log."""
        self.command("send-key", keys=[
            {"type": "qcode", "data": key} for key in ("alt", "sysrq", "w")])

    def set_carrier(self, up):
        self.command("set_link", name="nic", up=up)

    def output(self, data):
        if self.up_after is None and self.state == "running":
            self.up_after = time.monotonic() - self.started
            self.session.verbose(f"{self.name}: first output after "
                                 f"{self.up_after:.1f} s ({self.opts.accel})")
        data = self.tail + data
        self.tail = b""
        match = self.exit_mark.search(data)
        if match:
            self.session.print(self, data[:match.start()], last=True)
            self.status, self.state = int(match.group(1)), "finished"
            self.session.finished(self)
            return
        # A mark that is not whole yet.
        start = data.rfind(b"\x1e")
        if start >= 0 and len(data) - start < 64:
            data, self.tail = data[:start], data[start:]
        self.session.print(self, data)

    def kill(self, state):
        if self.state in ("running", "finished"):
            self.state = state
            self.stop()

    def stop(self):
        self.process.kill()

    def ended(self):
        self.process.wait()
        self.out.drain()
        for port in (self.out, self.qmp, *self.control):
            port.close()
        if self.tty:
            self.tty.close()
        if self.state == "restarting":
            self.session.verbose(f"{self.name}: starting again")
            self.start()
            return
        self.session.print(self, self.tail, last=True)
        self.tail = b""
        if self.state != "killed":
            self.state = "off"
        self.session.ended(self)

    def faults(self):
        return console.faults(console.lines(self.console), self.opts.allow,
                              self.opts.all_races)

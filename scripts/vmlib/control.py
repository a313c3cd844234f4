# SPDX-License-Identifier: GPL-2.0-only
"""What scripts ask of the host: barriers, the link, the machines' power.

A request is a line "ID WORD...", its answer "ID STATUS [MESSAGE]". A new
request on a port withdraws one that its caller no longer waits for.
"""

import inspect

from . import relay


class Refused(Exception):
    pass


class Waiter:
    def __init__(self, machine, port, ident):
        self.machine, self.port, self.ident = machine, port, ident
        self.timer = None

    def answer(self, status=0, message=""):
        self.port.send(f"{self.ident} {status} {message}\n".encode())


class Control:
    def __init__(self, session):
        self.session = session
        self.barriers = {}          # name -> {machine's name: Waiter}
        self.done = []              # those whose script has ended

    def request(self, machine, port, line):
        ident, *words = line.split()
        self.withdraw(port)
        waiter = Waiter(machine, port, ident)
        try:
            handler = getattr(self, "do_" + words[0], None) if words else None
            if not handler:
                raise Refused(f"no request '{' '.join(words)}'")
            try:
                inspect.signature(handler).bind(waiter, *words[1:])
            except TypeError as error:
                raise Refused(f"{words[0]}: {error}") from error
            if handler(waiter, *words[1:]) is not True:
                waiter.answer()
        except (Refused, ValueError) as error:
            waiter.answer(1, str(error))

    def withdraw(self, port):
        for name, waiting in list(self.barriers.items()):
            for who, waiter in list(waiting.items()):
                if waiter.port is port:
                    self.session.loop.cancel(waiter.timer)
                    del waiting[who]
            if not waiting:
                del self.barriers[name]

    def gone(self, machine):
        """The machine's script has ended: nobody can meet it any more."""
        for port in machine.control:
            self.withdraw(port)
        for name, waiting in list(self.barriers.items()):
            for waiter in waiting.values():
                self.session.loop.cancel(waiter.timer)
                waiter.answer(1, f"barrier {name}: machine {machine.name} "
                                 f"{self.why(machine)}")
            del self.barriers[name]

    @staticmethod
    def why(machine):
        if machine.state == "killed":
            return "was killed"
        if machine.status is None:
            return "went off"
        return f"has ended with status {machine.status}"

    def do_barrier(self, waiter, name, seconds=None):
        for machine in self.session.machines.values():
            if machine.state not in ("running", "restarting"):
                raise Refused(f"barrier {name}: machine {machine.name} "
                              f"{self.why(machine)}")
        waiting = self.barriers.setdefault(name, {})
        waiting[waiter.machine.name] = waiter
        if len(waiting) == len(self.session.machines):
            del self.barriers[name]
            for each in waiting.values():
                self.session.loop.cancel(each.timer)
                each.answer()
        elif seconds:
            waiter.timer = self.session.loop.after(
                float(seconds), lambda: self.late(name, waiter))
        return True

    def late(self, name, waiter):
        self.withdraw(waiter.port)
        waiter.answer(1, f"barrier {name}: the other machine did not come")

    def do_finished(self, waiter):
        self.done.append(waiter)
        self.session.machine_waits()
        return True

    def release(self):
        """All scripts have ended: the machines power off."""
        for waiter in self.done:
            waiter.answer()
        self.done.clear()

    def do_link(self, waiter, verb, *words):
        if verb in ("down", "up"):
            if not self.session.relay:
                raise Refused("one machine has no link; there is the device "
                              "in $NETDEV")
            waiter.machine.set_carrier(verb == "up")
            return
        if not self.session.relay:
            raise Refused("one machine has no link")
        if verb in ("cut", "heal"):
            self.session.relay.connected = verb == "heal"
        elif verb == "clear":
            self.session.relay.shape = None
        elif verb == "shape":
            self.session.relay.shape = shape(words)
        else:
            raise Refused(f"link has no '{verb}'")

    def do_machine(self, waiter, verb, name):
        machine = self.session.machines.get(name)
        if not machine:
            raise Refused(f"no machine '{name}'")
        if verb == "kill":
            machine.kill("killed")
        elif verb == "restart":
            for port in machine.control:
                self.withdraw(port)
            machine.restart()
        else:
            raise Refused(f"machine has no '{verb}'")


def shape(words):
    values = {}
    if not words or len(words) % 2:
        raise Refused("link shape takes KEY VALUE pairs")
    for key, value in zip(words[::2], words[1::2]):
        if key not in ("delay", "loss", "rate", "dup", "reorder"):
            raise Refused(f"link shape has no '{key}'; there are delay MS, "
                          "loss PCT, rate MBIT, dup PCT, reorder PCT")
        values[key] = float(value)
        if values[key] < 0:
            raise Refused(f"{key} {value} is below 0")
        if key in ("loss", "dup", "reorder") and values[key] > 100:
            raise Refused(f"{key} {value} is above 100 percent")
    values["delay"] = values.get("delay", 0) / 1000
    return relay.Shape(**values)

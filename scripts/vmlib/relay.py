# SPDX-License-Identifier: GPL-2.0-only
"""The cable between two machines.

Each QEMU connects a stream socket (`-netdev stream`): frames with a 32-bit
big-endian length in front. The relay hands each frame to the other side, or
drops, delays, doubles and reorders it as the scripts ask.
"""

import collections
import random
import selectors
import socket
import struct
import time

HEADER = struct.Struct(">I")
# More than this waiting for a delay, the rate or a slow machine is dropped, as
# a switch would.
QUEUE_BYTES = 4 << 20


class Shape:
    """How frames travel; the values are those of `link shape`."""

    def __init__(self, delay=0.0, loss=0.0, rate=0.0, dup=0.0, reorder=0.0):
        self.delay, self.loss, self.rate = delay, loss, rate
        self.dup, self.reorder = dup, reorder


class End:
    """One machine's plug."""

    def __init__(self, relay, name, path, seed):
        self.relay, self.name = relay, name
        self.random = random.Random(seed)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(1)
        self.sock = None
        self.other = None
        self.input = bytearray()
        self.output = collections.deque()
        self.output_bytes = 0
        self.underway_bytes = 0
        self.free_at = 0.0
        relay.loop.watch(self.listener, self.accept)

    def accept(self):
        self.close()
        self.sock = self.listener.accept()[0]
        self.sock.setblocking(False)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            self.sock.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
        self.relay.loop.watch(self.sock, self.receive)

    def close(self):
        if self.sock:
            self.relay.loop.forget(self.sock)
            self.sock.close()
        self.sock = None
        self.input.clear()
        self.output.clear()
        self.output_bytes = 0

    def receive(self):
        try:
            data = self.sock.recv(1 << 18)
        except BlockingIOError:
            data = None
        except OSError:
            data = b""
        if data == b"":
            self.close()
            return
        if self.sock and self.output:
            self.flush()
        if not data:
            return
        self.input += data
        start, total = 0, len(self.input)
        while total - start >= HEADER.size:
            end = start + HEADER.size + HEADER.unpack_from(self.input, start)[0]
            if end > total:
                break
            self.relay.carry(self, bytes(self.input[start:end]))
            start = end
        del self.input[:start]
        self.other.flush()

    def send(self, frame):
        if self.sock and self.output_bytes + len(frame) <= QUEUE_BYTES:
            self.output.append(frame)
            self.output_bytes += len(frame)

    def flush(self):
        if not self.sock:
            return
        try:
            while self.output:
                data = self.output.popleft()
                while self.output and len(data) < 1 << 16:
                    data += self.output.popleft()
                sent = self.sock.send(data)
                self.output_bytes -= sent
                if sent < len(data):
                    self.output.appendleft(data[sent:])
                    break
        except BlockingIOError:
            self.output.appendleft(data)
        except OSError:
            self.close()
            return
        events = selectors.EVENT_READ
        if self.output:
            events |= selectors.EVENT_WRITE
        self.relay.loop.watch(self.sock, self.receive, events)


class Relay:
    def __init__(self, loop, path, plug=End):
        """path(name) gives the socket's path of a machine."""
        self.loop = loop
        self.connected = True
        self.shape = None
        self.ends = {name: plug(self, name, path(name), seed)
                     for seed, name in enumerate("ab", 1)}
        self.ends["a"].other = self.ends["b"]
        self.ends["b"].other = self.ends["a"]

    def carry(self, source, frame):
        if not self.connected:
            return
        target = source.other
        shape = self.shape
        if not shape:
            target.send(frame)
            return
        # Always the same number of draws for a frame, so that one figure of
        # the shape does not change what another one does.
        draws = [source.random.random() * 100 for _ in range(3)]
        if draws[0] < shape.loss:
            return
        now = time.monotonic()
        leave = now
        if shape.rate:
            leave = max(now, source.free_at)
            if source.underway_bytes + len(frame) > QUEUE_BYTES:
                return
            leave += (len(frame) - HEADER.size) * 8 / (shape.rate * 1e6)
            source.free_at = leave
        # A reordered frame overtakes those that the delay still holds.
        arrive = leave if draws[2] < shape.reorder else leave + shape.delay
        for _ in range(2 if draws[1] < shape.dup else 1):
            if arrive <= now:
                target.send(frame)
            else:
                source.underway_bytes += len(frame)
                self.loop.at(arrive, lambda: self.arrive(source, frame))

    def arrive(self, source, frame):
        source.underway_bytes -= len(frame)
        if self.connected:
            source.other.send(frame)
            source.other.flush()

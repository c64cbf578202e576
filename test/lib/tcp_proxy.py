"""A TCP proxy between nodes, for tests: it delays, throttles, cuts without a word, resets and refuses connections.

A node listens on 127.0.0.1, its proxy on another loopback address with the same ports. So a node that is known by the
proxy's address is reached through it whatever port it is asked for:

    with Proxy("127.0.0.12", [5433, *range(7000, 7010)]) as proxy:
        proxy.delay = 0.001      # seconds, each way
        proxy.rate = 1_000_000   # bytes per second and direction of a connection; None: as fast as it goes
        proxy.cut()              # the wire is cut: no byte, no acknowledgement, no reset; new connections get no answer
        proxy.heal()
        proxy.reset()            # every connection is closed by a reset
        proxy.refuse()           # as a host without the server; until heal()

A cut drops what arrives before TCP sees it, by a socket filter. So the other end gets no acknowledgements, as after the
loss of a host. Needs Linux; no rights.
"""

import asyncio
import ctypes
import socket
import struct
import threading
import time

SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27
# Bytes that are read at a time, and kept back in each direction of a connection at most.
CHUNK, MOST_KEPT = 64 * 1024, 1 << 20
# One instruction of the classic packet filter: return 0, keep nothing of the packet.
_DROP_ALL = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))


def drop_arrivals(sock):
    """Whatever arrives for this socket from now on is lost."""
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", 1, ctypes.addressof(_DROP_ALL)))


def take_arrivals(sock):
    """Ends `drop_arrivals`."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
    except OSError:
        pass  # no filter


class Connection:
    """A connection to the proxy and its connection to the node."""

    def __init__(self, proxy, client, node):
        self.proxy = proxy
        self.ends = (client, node)
        self.pumps = [asyncio.ensure_future(self.pump(client, node)), asyncio.ensure_future(self.pump(node, client))]

    async def pump(self, source, target):
        """Carries bytes one way."""
        loop = asyncio.get_running_loop()
        kept, room, arrived = [], asyncio.Event(), asyncio.Event()
        room.set()
        sizes = [0]

        async def send():
            while True:
                while not kept:
                    arrived.clear()
                    await arrived.wait()
                due, data = kept[0]
                await asyncio.sleep(max(0, due - time.monotonic()))
                await self.proxy.whole.wait()
                if data is None:
                    target.shutdown(socket.SHUT_WR)
                    return
                if self.proxy.rate:
                    await asyncio.sleep(len(data) / self.proxy.rate)
                await loop.sock_sendall(target, data)
                self.proxy.bytes += len(data)
                kept.pop(0)
                sizes[0] -= len(data)
                room.set()

        sender = asyncio.ensure_future(send())
        try:
            while True:
                await room.wait()
                await self.proxy.whole.wait()
                size = CHUNK if not self.proxy.rate else max(1, min(CHUNK, int(self.proxy.rate / 20)))
                data = await loop.sock_recv(source, size)
                kept.append((time.monotonic() + self.proxy.delay, data or None))
                arrived.set()
                if not data:
                    await sender
                    return
                sizes[0] += len(data)
                if sizes[0] >= MOST_KEPT:
                    room.clear()
        except (OSError, asyncio.CancelledError):
            self.close()
        finally:
            sender.cancel()
            if all(pump.done() or pump is asyncio.current_task() for pump in self.pumps):
                self.close()

    def close(self, reset=False):
        for end in self.ends:
            if reset:
                try:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                except OSError:
                    pass
            end.close()
        for pump in self.pumps:
            pump.cancel()
        self.proxy.connections.discard(self)


class Proxy:
    """Forwards some ports of one loopback address to another; see the head of this file."""

    def __init__(self, host, ports, target="127.0.0.1"):
        self.host, self.ports, self.target = host, list(ports), target
        self.delay, self.rate = 0.0, None
        # Bytes forwarded and connections made so far.
        self.bytes = self.made = 0
        self.connections = set()
        self.listeners = {}
        self.is_cut = False

    def __enter__(self):
        started = threading.Event()

        def run():
            asyncio.set_event_loop(self.loop)
            self.whole = asyncio.Event()
            self.whole.set()
            self.listen()
            self.loop.call_soon(started.set)
            self.loop.run_forever()

        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        started.wait()
        return self

    def __exit__(self, *_):
        self.call(self.close_all)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def call(self, function, *arguments):
        """Runs a function in the proxy's thread; waits for it."""

        async def run():
            return function(*arguments)

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(30)

    def listen(self):
        for port in self.ports:
            if port not in self.listeners:
                listener = socket.socket()
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((self.host, port))
                listener.listen(64)
                listener.setblocking(False)
                self.listeners[port] = (listener, asyncio.ensure_future(self.accept(listener, port), loop=self.loop))

    async def accept(self, listener, port):
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(listener)
            asyncio.ensure_future(self.connect(client, port))

    async def connect(self, client, port):
        loop = asyncio.get_running_loop()
        node = socket.socket()
        for end in (client, node):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await loop.sock_connect(node, (self.target, port))
        except OSError:
            # Nobody there: as the node itself would say it.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            node.close()
            return
        self.made += 1
        self.connections.add(Connection(self, client, node))
        if self.is_cut:
            self.drop()

    def drop(self):
        for listener, _ in self.listeners.values():
            drop_arrivals(listener)
        for connection in self.connections:
            for end in connection.ends:
                drop_arrivals(end)

    def cut(self):
        """Nothing gets through any more, and nobody is told."""

        def cut():
            self.is_cut = True
            self.whole.clear()
            self.drop()

        self.call(cut)

    def heal(self):
        """Ends `cut` and `refuse`. Connections that were cut go on."""

        def heal():
            self.is_cut = False
            for listener, _ in self.listeners.values():
                take_arrivals(listener)
            for connection in self.connections:
                for end in connection.ends:
                    take_arrivals(end)
            self.whole.set()
            self.listen()

        self.call(heal)

    def reset(self):
        """Closes every connection by a reset."""
        self.call(lambda: [connection.close(reset=True) for connection in list(self.connections)])

    def refuse(self):
        """Closes every connection and takes no new ones."""
        self.call(self.close_all)

    def close_all(self):
        for listener, accepting in self.listeners.values():
            accepting.cancel()
            listener.close()
        self.listeners = {}
        for connection in list(self.connections):
            connection.close(reset=True)

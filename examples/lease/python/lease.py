#!/usr/bin/env python3
"""More performance for as long as a block of code runs.

    from lease import Lease, Refused

    with Lease(ttl=60):
        work()

A lease is a connection to yoctuned: it ends with the block, and with this process,
however that happens. A thread renews it at a third of its time to live, so that only a
process that hangs as a whole loses it. Root and the members of group yoctune may
have leases; where there is none, go on without: the work is only slower.

Standard library only, Python 3.6 and newer.
"""

import json
import socket
import sys
import threading

SOCKET = "/run/yoctune/socket"


class Refused(Exception):
    """yoctuned's answer to a request that it does not fulfil."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code  # malformed, denied, quota, none, device


class Lease:
    def __init__(self, path=SOCKET, ttl=600.0):
        self.path, self.ttl = path, ttl
        self.settings = []  # what the lease changed: path, wanted, found, outcome
        self.notes = []  # what it did not do
        self._lines = None
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def _ask(self, **request):
        with self._lock:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            line = self._lines.readline()
        if not line:
            raise ConnectionError("yoctuned ended the connection")
        answer = json.loads(line)
        if answer["type"] == "error":
            raise Refused(answer["code"], answer["message"])
        return answer

    def renew(self):
        """Starts the time to live anew."""
        return self._ask(type="renew")

    def _keep(self):
        while not self._ended.wait(self.ttl / 3):
            try:
                self.renew()
            except (OSError, Refused, ValueError):
                return  # the lease has ended; the work goes on, slower

    def __enter__(self):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(30)
            self._socket.connect(self.path)
            self._lines = self._socket.makefile("rb")
            answer = self._ask(type="acquire", profile="high-performance", ttl_ms=int(self.ttl * 1000))
        except BaseException:
            self._socket.close()
            raise
        self.settings, self.notes = answer.get("settings", []), answer.get("notes", [])
        threading.Thread(target=self._keep, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._lines.close()
        self._socket.close()


if __name__ == "__main__":
    try:
        with Lease(*sys.argv[1:2], ttl=60) as lease:
            print("granted", flush=True)
            for command in sys.stdin:  # holds it until the input ends
                if command.startswith("r"):
                    lease.renew()
    except (OSError, Refused) as err:
        sys.exit("lease: %s" % err)

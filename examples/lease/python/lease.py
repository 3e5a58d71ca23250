#!/usr/bin/env python3
"""The highest CPU performance while a block of code runs.

    from lease import Lease, Refused

    with Lease(ttl=60):
        work()

A lease is a connection to yoctuned: it ends with the block, or when this process ends or
crashes. A thread renews it at a third of its time to live, so that only a process that
hangs completely loses it. Root and members of the group yoctune may acquire leases. If
no lease is granted, continue without one: the work only runs slower.

Standard library only, Python 3.6 and newer.
"""

import json
import socket
import sys
import threading

SOCKET = "/run/yoctune/socket"


class Refused(Exception):
    """yoctuned refused the request."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code  # malformed, denied, quota, none, device


class Lease:
    def __init__(self, path=SOCKET, ttl=600.0):
        self.path, self.ttl = path, ttl
        self.settings = []  # what the lease changed: path, wanted, found, outcome
        self.notes = []  # settings that it did not change, with reasons
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
        """Restarts the time to live."""
        return self._ask(type="renew")

    def _keep(self):
        while not self._ended.wait(self.ttl / 3):
            try:
                self.renew()
            except (OSError, Refused, ValueError):
                return  # the lease has ended; the work continues, slower

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
            for command in sys.stdin:  # hold the lease until the input ends
                if command.startswith("r"):
                    lease.renew()
    except (OSError, Refused) as err:
        sys.exit("lease: %s" % err)

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from lsprotocol import types as lsp

from session import CONFIGS, Session, YOCTUNE


class Raw(unittest.TestCase):
    """Bytes that no client library sends."""

    def setUp(self):
        self.server = subprocess.Popen([YOCTUNE, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.server.stdout.close)
        self.addCleanup(self.server.stderr.close)
        self.addCleanup(self.server.wait, 20)
        self.addCleanup(self.server.stdin.close)
        self.ids = 0

    def send(self, body):
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.server.stdin.flush()

    def read(self):
        size = None
        while (line := self.server.stdout.readline()) != b"\r\n":
            if not line:
                self.fail(f"the server ended: {self.server.stderr.read()}")
            name, _, value = line.partition(b":")
            if name == b"Content-Length":
                size = int(value)
        return json.loads(self.server.stdout.read(size))

    def reply(self, id):
        while (m := self.read()).get("id", "none") != id or "method" in m:
            pass
        return m

    def call(self, method, params=None):
        self.ids += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params or {}}).encode())
        return self.reply(self.ids)

    def notify(self, method, params=None):
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode())

    def begin(self):
        self.assertEqual(self.call("initialize", {"capabilities": {}})["result"]["capabilities"]["positionEncoding"], "utf-16")
        self.notify("initialized")

    def end(self):
        self.assertIsNone(self.call("shutdown")["result"])
        self.notify("exit")
        self.assertEqual(self.server.wait(20), 0)

    def test_life_of_a_session(self):
        self.assertEqual(self.call("textDocument/hover")["error"]["code"], -32002)
        self.begin()
        self.assertEqual(self.call("initialize", {"capabilities": {}})["error"]["code"], -32600)
        self.assertIsNone(self.call("shutdown")["result"])
        self.assertEqual(self.call("textDocument/hover")["error"]["code"], -32600)
        self.notify("exit")
        self.assertEqual(self.server.wait(20), 0)

    def test_exit_without_shutdown(self):
        self.begin()
        self.notify("exit")
        self.assertEqual(self.server.wait(20), 1)

    def test_end_of_input_without_shutdown(self):
        self.begin()
        self.server.stdin.close()
        self.assertEqual(self.server.wait(20), 1)

    def test_bad_headers_end_the_session(self):
        for header in (b"GET / HTTP/1.1\r\n\r\n", b"\r\n", b"Content-Length: -1\r\n\r\n", b"Content-Length: x\r\n\r\n", b"x" * 100000):
            with self.subTest(header[:30]):
                got = subprocess.run([YOCTUNE, "lsp"], input=header, capture_output=True, timeout=20)
                self.assertEqual(got.returncode, 1)
                self.assertNotIn(b"panic", got.stderr)

    def test_bad_messages_do_not(self):
        self.begin()
        for body, code in ((b"{", -32700), (b"\xff\xfe", -32700), (b"[]", -32600), (b"1", -32600), (b"{}", -32600),
                           (b'{"jsonrpc":"2.0","id":{},"method":"x"}', -32600), (b"[" * 100000, -32700)):
            with self.subTest(body[:30]):
                self.send(body)
                self.assertEqual(self.reply(None)["error"]["code"], code)
        self.send(b" " * (33 << 20))
        self.assertIn("32 MiB", self.reply(None)["error"]["message"])
        for method in ("textDocument/rename", "nothing", "", "../../x\x1b[31m"):
            self.assertEqual(self.call(method)["error"]["code"], -32601)
        for params in (None, [], 3, {"textDocument": 7}, {"textDocument": {"uri": "file:///x"}, "position": {"line": "a"}}):
            self.ids += 1
            self.send(json.dumps({"jsonrpc": "2.0", "id": self.ids, "method": "textDocument/hover", "params": params}).encode())
            self.assertTrue({"error", "result"} & self.reply(self.ids).keys())
        for method in ("textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "$/cancelRequest", "$/unknown", "workspace/didChangeWatchedFiles"):
            for params in (None, [], {"textDocument": 7}, {"id": None}, {"textDocument": {"uri": "%"}}):
                self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())
        self.end()


    def test_requests_are_cancelled(self):
        root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, root)
        (root / "config.hcl").write_text(CONFIGS["config.hcl"])
        uri = (root / "config.hcl").as_uri()
        self.begin()
        self.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "hcl", "version": 1, "text": CONFIGS["config.hcl"]}})
        hover = {"textDocument": {"uri": uri}, "position": {"line": 6, "character": 3}}
        for id in ("a", "b"):
            self.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": "textDocument/hover", "params": hover}).encode())
        self.notify("$/cancelRequest", {"id": "a"})
        replies = {}
        while len(replies) < 2:
            m = self.read()
            if "method" not in m:
                replies[m["id"]] = m
        self.assertEqual(replies["a"]["error"]["code"], -32800)  # the evaluation takes longer than a message
        self.assertIn("board", replies["b"]["result"]["contents"]["value"])
        self.end()


class Hostile(Session):
    async def test_ten_megabytes(self):
        self.write("config.cue", CONFIGS["config.cue"])
        uri = self.open("config.cue", CONFIGS["config.cue"] + "// x\n" * (2 << 20))
        self.assertEqual([d.code for d in await self.diagnostics(uri)], ["YT0006"])
        self.change(uri, CONFIGS["config.cue"])
        self.assertEqual([d for d in await self.diagnostics(uri) if d.severity == lsp.DiagnosticSeverity.Error], [])

    async def test_files_that_are_not_of_a_configuration(self):
        self.write("notes.cue", "a: 1\n")
        for uri, reason in ((self.open("notes.cue"), "is not part of a yoctune configuration"),
                            ("untitled:Untitled-1", "only files on disk"), ("file://elsewhere/config.cue", "another machine"),
                            ("file:///x%00/config.cue", "not absolute"), ("file:///etc/passwd", "not a CUE, HCL or Jsonnet file"), ("%zz", "not a URI")):
            self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "cue", 1, "a: 1\n")))
            await self.log_line(reason)
        self.assertEqual(self.published, {})

    async def test_paths_that_lead_out(self):
        outside = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, outside)
        (outside / "secret.libsonnet").write_text("{ thp: 'hunter2' }\n")
        os.mkdir(self.root / "a")
        os.symlink(outside / "secret.libsonnet", self.root / "a/link.libsonnet")
        os.mkfifo(self.root / "a/pipe.cue")
        uri = self.open("a/config.jsonnet", CONFIGS["config.jsonnet"].replace("{ thp: 'madvise', zram: '2GiB' }", "import 'link.libsonnet'"))
        [d] = await self.diagnostics(uri)
        self.assertIn("pipe.cue is not a regular file", d.message)
        os.remove(self.root / "a/pipe.cue")
        for path in ("link.libsonnet", "../../etc/passwd", str(outside / "secret.libsonnet")):
            self.change(uri, CONFIGS["config.jsonnet"].replace("{ thp: 'madvise', zram: '2GiB' }", f"import '{path}'"))
            found = await self.diagnostics(uri)
            self.assertNotIn("hunter2", str(found))
            self.assertTrue(any(d.severity == lsp.DiagnosticSeverity.Error for d in found), path)

    async def test_names_with_escapes(self):
        name = "a b/ä#%?'\"/config.cue"
        self.write(name, CONFIGS["config.cue"].replace("madvise", "madvice"))
        uri = self.open(name)
        self.assertIn("YT0103", [d.code for d in await self.diagnostics(uri)])
        # An editor that escapes more gets its own spelling back.
        more = uri.replace("config", "%63onfig")
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(more, "cue", 1, CONFIGS["config.cue"])))
        await self.until(lambda: more in self.published, "nothing for the other spelling")

    async def test_file_on_disk_that_is_not_utf8(self):
        self.write("a/other.cue", b"package box\n\n// \xe4\n")
        self.write("a/config.cue", CONFIGS["config.cue"])
        await self.diagnostics(self.open("a/config.cue"))
        other = (self.root / "a/other.cue").as_uri()
        await self.until(lambda: other in self.published, "nothing for the file that is not UTF-8")
        self.assertEqual([d.code for d in self.published[other].diagnostics], ["YT0001"])

    async def test_session_outlives_its_worker(self):
        text = CONFIGS["config.cue"]
        self.write("config.cue", text)
        uri = self.open("config.cue")
        await self.diagnostics(uri)
        workers = set()
        for task in pathlib.Path(f"/proc/{self.client._server.pid}/task").iterdir():
            workers |= set((task / "children").read_text().split())
        [worker] = workers
        os.kill(int(worker), signal.SIGKILL)
        await self.log_line("the next change starts another evaluation")
        wrong = text.replace("vm.swappiness", "vm.swapiness", 1) + 'profiles: calm: sysctl: "vm.swappiness": 10\n'
        self.change(uri, wrong)
        self.assertIn(self.span(wrong, '"vm.swapiness"'), [d.range for d in await self.diagnostics(uri)])
        got = await self.client.text_document_hover_async(lsp.HoverParams(lsp.TextDocumentIdentifier(uri), self.at(wrong, "vm.swappiness")))
        self.assertIn("profile calm", got.contents.value)

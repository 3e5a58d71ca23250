"""A session of an editor with `yoctune lsp`, over the client of pygls (Apache-2.0).

The client and the types of the protocol (lsprotocol) are generated from the specification:
a reply of another form is an error here.
"""

import asyncio
import logging
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

logging.getLogger("asyncio").setLevel(logging.ERROR)  # unittest makes it log what is slow

YOCTUNE = os.environ["YOCTUNE"]

# The same configuration in three languages: a target, a profile and a service.
CONFIGS = {
    "config.cue": """\
package box

layer: {name: "box-tuning", maintainer: "Platform Team <platform@example.com>"}

targets: "line-camera": {
	board:   "orin-nano-8gb"
	release: "scarthgap"
	use: ["calm"]
	cpu: isolate: [4, 5]
	kernel: {
		config: NET_SCH_FQ: "y"
		args: quiet:          true
	}
}

profiles: calm: {
	memory: {thp: "madvise", zram: "2GiB"}
	sysctl: "vm.swappiness": 10
}
""",
    "config.hcl": """\
layer {
  name       = "box-tuning"
  maintainer = "Platform Team <platform@example.com>"
}

target "line-camera" {
  board   = "orin-nano-8gb"
  release = "scarthgap"
  use     = ["calm"]
  cpu {
    isolate = [4, 5]
  }
  kernel {
    config {
      NET_SCH_FQ = "y"
    }
    args = { quiet = true }
  }
}

profile "calm" {
  memory {
    thp  = "madvise"
    zram = "2GiB"
  }
  sysctl = { "vm.swappiness" = 10 }
}
""",
    "config.jsonnet": """\
{
  layer: { name: 'box-tuning', maintainer: 'Platform Team <platform@example.com>' },
  targets: {
    'line-camera': {
      board: 'orin-nano-8gb',
      release: 'scarthgap',
      use: ['calm'],
      cpu: { isolate: [4, 5] },
      kernel: {
        config: { NET_SCH_FQ: 'y' },
        args: { quiet: true },
      },
    },
  },
  profiles: {
    calm: {
      memory: { thp: 'madvise', zram: '2GiB' },
      sysctl: { 'vm.swappiness': 10 },
    },
  },
}
""",
}


class Session(unittest.IsolatedAsyncioTestCase):
    """Starts a server for each test and shuts it down."""

    encodings = ["utf-16"]

    async def asyncSetUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="yoctune-editor-")).resolve()
        self.addCleanup(shutil.rmtree, self.root)
        self.env = dict(os.environ, XDG_CACHE_HOME=str(self.root / "cache"))
        self.versions, self.published, self.logged = {}, {}, []
        self.news = asyncio.Condition()
        self.client = LanguageClient("yoctune-tests", "1")

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        async def publish(params):
            async with self.news:
                self.published[params.uri] = params
                self.news.notify_all()

        @self.client.feature(lsp.WINDOW_LOG_MESSAGE)
        async def log(params):
            async with self.news:
                self.logged.append(params.message)
                self.news.notify_all()

        @self.client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
        async def register(params):
            return None

        await self.client.start_io(YOCTUNE, "lsp", env=self.env)
        capabilities = lsp.ClientCapabilities(
            general=lsp.GeneralClientCapabilities(position_encodings=[lsp.PositionEncodingKind(e) for e in self.encodings]),
            workspace=lsp.WorkspaceClientCapabilities(
                did_change_watched_files=lsp.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)),
        )
        self.server = await self.client.initialize_async(
            lsp.InitializeParams(capabilities=capabilities, root_uri=self.root.as_uri(), process_id=os.getpid()))
        self.client.initialized(lsp.InitializedParams())

    async def asyncTearDown(self):
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await asyncio.wait_for(self.client._server.wait(), 10)
        self.assertEqual(self.client._server.returncode, 0)
        await self.client.stop()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path.as_uri()

    def open(self, name, text=None):
        """Opens a file; with a text, one that differs from the file on disk."""
        uri = (self.root / name).as_uri()
        if text is None:
            text = (self.root / name).read_text()
        self.versions[uri] = 1
        self.published.pop(uri, None)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(
            uri=uri, language_id=name.rsplit(".")[-1], version=1, text=text)))
        return uri

    def change(self, uri, text):
        self.versions[uri] += 1
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri]),
            [lsp.TextDocumentContentChangeWholeDocument(text)]))

    async def until(self, ready, what, seconds=20):
        async with self.news:
            try:
                await asyncio.wait_for(self.news.wait_for(ready), seconds)
            except TimeoutError:
                self.fail(f"{what}; published {self.published}, logged {self.logged}")

    async def diagnostics(self, uri):
        """The diagnostics of the file's present version."""
        def ready():
            p = self.published.get(uri)
            return p is not None and p.version == self.versions[uri]
        await self.until(ready, f"no diagnostics of {uri}, version {self.versions[uri]}")
        return self.published[uri].diagnostics

    async def log_line(self, part, seconds=20):
        await self.until(lambda: any(part in line for line in self.logged), f"no log line with {part!r}", seconds)

    def at(self, text, mark, after=True):
        """The position at the end of a mark in a text, or at its start."""
        i = text.index(mark) + (len(mark) if after else 0)
        line = text.count("\n", 0, i)
        rest = text[text.rfind("\n", 0, i) + 1:i]
        unit = "utf-8" if self.encodings[0] == "utf-8" else "utf-16-le"
        return lsp.Position(line, len(rest.encode(unit)) // (1 if unit == "utf-8" else 2))

    def span(self, text, mark):
        return lsp.Range(self.at(text, mark, after=False), self.at(text, mark))

    def run_yoctune(self, *args):
        return subprocess.run([YOCTUNE, *args], env=self.env, cwd=self.root, capture_output=True, text=True)


if __name__ == "__main__":  # the configurations with a wrong value, for neovim.lua
    for name, text in CONFIGS.items():
        path = pathlib.Path(sys.argv[1]) / name.rsplit(".")[-1] / name
        path.parent.mkdir()
        path.write_text(text.replace("madvise", "madvice"))
        print(path)

import json

from lsprotocol import types as lsp

from session import CONFIGS, Session


class Diagnostics(Session):
    async def test_finding_follows_the_edit(self):
        for name, text in CONFIGS.items():
            with self.subTest(name):
                self.write(f"{name}.d/{name}", text)
                uri = self.open(f"{name}.d/{name}")
                errors = [d for d in await self.diagnostics(uri) if d.severity == lsp.DiagnosticSeverity.Error]
                self.assertEqual(errors, [])
                quote = "'" if name.endswith("jsonnet") else '"'
                wrong = text.replace(f"{quote}madvise{quote}", f"{quote}madvice{quote}")
                self.change(uri, wrong)
                [d] = [d for d in await self.diagnostics(uri) if d.severity == lsp.DiagnosticSeverity.Error]
                self.assertEqual(d.range, self.span(wrong, f"{quote}madvice{quote}"))
                self.assertEqual((d.code, d.source), ("YT0103", "yoctune"))
                self.assertIn('did you mean "madvise"?', d.message)
                self.assertTrue(d.code_description.href.endswith("docs/rules.md#yt0103"), d.code_description)
                self.change(uri, text)
                self.assertNotIn("YT0103", [d.code for d in await self.diagnostics(uri)])

    async def test_same_findings_as_vet(self):
        text = CONFIGS["config.cue"].replace('board:   "orin-nano-8gb"', 'board:   "orin-nano-8gb"\n\tsysctl: "vm.swapiness": 10\n\tkernel: config: NO_SUCH: "y"')
        self.write("a/config.cue", text)
        vet = [json.loads(line) for line in self.run_yoctune("vet", "a", "--format", "json").stdout.splitlines()]
        want = sorted((d["id"], d["position"]["line"] - 1) for d in vet if d["type"] == "diagnostic")
        got = await self.diagnostics(self.open("a/config.cue"))
        self.assertGreaterEqual(len(want), 2)
        self.assertEqual(sorted((d.code, d.range.start.line) for d in got), want)

    async def test_syntax_error_while_typing(self):
        for name, text in CONFIGS.items():
            with self.subTest(name):
                self.write(f"{name}.d/{name}", text)
                uri = self.open(f"{name}.d/{name}")
                await self.diagnostics(uri)
                for end in range(0, len(text), max(1, len(text) // 12)):
                    self.change(uri, text[:end])
                self.change(uri, text[:-4] + "((")
                found = await self.diagnostics(uri)
                self.assertTrue(any(d.severity == lsp.DiagnosticSeverity.Error for d in found), found)
                self.change(uri, text)
                self.assertEqual([d for d in await self.diagnostics(uri) if d.severity == lsp.DiagnosticSeverity.Error], [])

    async def test_files_of_a_package_and_an_imported_library(self):
        head, _, rest = CONFIGS["config.cue"].partition("profiles:")
        self.write("robots/cue.mod/module.cue", 'module: "example.com/robots@v0"\nlanguage: version: "v0.14.0"\n')
        self.write("robots/camera/config.cue", head)
        profile = self.write("robots/camera/profiles.cue", 'package box\n\nimport "example.com/robots/lib"\n\nprofiles: calm: lib.Calm\n')
        library = "package lib\n\nCalm: {memory: zram: \"2GiB\", sysctl: \"vm.swappiness\": 10}\n"
        self.write("robots/lib/lib.cue", library)
        self.open("robots/camera/config.cue")
        self.assertEqual([d.code for d in await self.diagnostics(self.open("robots/camera/profiles.cue"))
                          if d.severity == lsp.DiagnosticSeverity.Error], [])
        # Unsaved text of the library is in force, and its finding is shown in the library.
        wrong = library.replace("vm.swappiness", "vm.swapiness")
        lib = self.open("robots/lib/lib.cue", wrong)
        [d] = await self.diagnostics(lib)
        self.assertEqual(d.range, self.span(wrong, '"vm.swapiness"'))
        # Closing it leaves what is on disk.
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(lib)))
        await self.until(lambda: not self.published[lib].diagnostics, "the finding stays")
        self.assertIn(profile, self.published)

    async def test_imported_jsonnet_and_hcl_module(self):
        jsonnet = CONFIGS["config.jsonnet"].replace("{ thp: 'madvise', zram: '2GiB' }", "import 'lib/memory.libsonnet'")
        self.write("j/lib/memory.libsonnet", "{ thp: 'madvise' }\n")
        self.write("j/config.jsonnet", jsonnet)
        await self.diagnostics(self.open("j/config.jsonnet"))
        wrong = "{ thp: 'madvice' }\n"
        uri = self.open("j/lib/memory.libsonnet", wrong)
        [d] = await self.diagnostics(uri)
        self.assertEqual(d.range, self.span(wrong, "'madvice'"))

        self.write("h/modules/net/main.hcl", 'profile "net" {\n  memory {\n    thp = "madvise"\n  }\n}\n')
        self.write("h/config.hcl", CONFIGS["config.hcl"] + 'module "net" {\n  source = "./modules/net"\n}\n')
        await self.diagnostics(self.open("h/config.hcl"))
        wrong = 'profile "net" {\n  memory {\n    thp = "madvice"\n  }\n}\n'
        uri = self.open("h/modules/net/main.hcl", wrong)
        [d] = [d for d in await self.diagnostics(uri) if d.severity == lsp.DiagnosticSeverity.Error]
        self.assertEqual(d.range, self.span(wrong, '"madvice"'))

    async def test_several_configurations(self):
        for name in ("one", "two"):
            self.write(f"{name}/config.cue", CONFIGS["config.cue"])
        one, two = self.open("one/config.cue"), self.open("two/config.cue")
        self.change(two, CONFIGS["config.cue"].replace('"madvise"', '"madvice"'))
        self.assertIn("YT0103", [d.code for d in await self.diagnostics(two)])
        self.assertNotIn("YT0103", [d.code for d in await self.diagnostics(one)])

    async def test_file_changed_on_disk(self):
        head, _, rest = CONFIGS["config.cue"].partition("profiles:")
        self.write("a/config.cue", head)
        other = self.write("a/other.cue", "package box\n\nprofiles:" + rest)
        await self.diagnostics(self.open("a/config.cue"))
        self.write("a/other.cue", "package box\n\nprofiles:" + rest.replace('"madvise"', '"madvice"'))
        self.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([lsp.FileEvent(other, lsp.FileChangeType.Changed)]))
        await self.until(lambda: other in self.published and self.published[other].diagnostics, "no finding in the other file")


class Columns:
    async def test_columns_are_counted_in_the_units_agreed_on(self):
        text = CONFIGS["config.cue"].replace('name: "box-tuning", maintainer: "Platform Team <platform@example.com>"',
                                             'maintainer: "😀ä <a@example.com>", name: "Box"')
        self.write("a/config.cue", text)
        found = await self.diagnostics(self.open("a/config.cue"))
        [d] = [d for d in found if d.range.start.line == 2]
        self.assertEqual(d.range, self.span(text, '"Box"'))


class UTF16Columns(Columns, Session):
    pass


class UTF8Columns(Columns, Session):
    encodings = ["utf-8", "utf-16"]

    async def test_encoding_is_agreed_on(self):
        self.assertEqual(self.server.capabilities.position_encoding, "utf-8")


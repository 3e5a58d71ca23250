from lsprotocol import types as lsp

from session import CONFIGS, Session

# What is typed into the configuration, in each language: | is the cursor.
TYPED = {
    "config.cue": {
        "board": ('board:   "orin-nano-8gb"', 'board:   "or|"', '"orin-nx-16gb"'),
        "release": ('release: "scarthgap"', 'release: "|"', '"wrynose"'),
        "profile": ('use: ["calm"]', 'use: ["|"]', '"calm"'),
        "mode": ("cpu: isolate: [4, 5]", 'power: default: "|"', '"15W"'),
        "sysctl": ('sysctl: "vm.swappiness": 10', 'sysctl: "vm.dirty_ra|"', '"vm.dirty_ratio": '),
        "option": ('config: NET_SCH_FQ: "y"', "config: TCP_CONG_BB|", "TCP_CONG_BBR: "),
        "argument": ("args: quiet:          true", "args: isolcp|", "isolcpus: "),
        "variable": ("profiles: calm", "build: variables: BB_DISKMON_D|\nprofiles: calm", "BB_DISKMON_DIRS: "),
        "field": ('memory: {thp: "madvise", zram: "2GiB"}', "memory: {th|}", "thpDefrag: "),
        "choice": ('thp: "madvise"', 'thp: "|"', '"never"'),
        "module": ('memory: {thp: "madvise", zram: "2GiB"}', "modules: nvm|", "nvme: "),
        "section": ("\tcpu: isolate: [4, 5]", "\tstor|", "storage: "),
        "thread": ('memory: {thp: "madvise", zram: "2GiB"}', 'threads: "ksoft|"', '"ksoftirqd/*": '),
        "offload": ('memory: {thp: "madvise", zram: "2GiB"}', 'network: "eth0": offloads: "rx-gr|"', '"rx-gro": '),
        "package": ('memory: {thp: "madvise", zram: "2GiB"}', "packages: hto|", "htop: "),
        "directive": ('memory: {thp: "madvise", zram: "2GiB"}', 'services: "a.service": unit: Service: MemoryHi|', "MemoryHigh: "),
    },
    "config.hcl": {
        "board": ('board   = "orin-nano-8gb"', 'board   = "or|"', '"orin-nx-16gb"'),
        "release": ('release = "scarthgap"', 'release = "|"', '"wrynose"'),
        "profile": ('use     = ["calm"]', 'use     = ["|"]', '"calm"'),
        "mode": ("cpu {\n    isolate = [4, 5]\n  }", 'power {\n    default = "|"\n  }', '"15W"'),
        "sysctl": ('sysctl = { "vm.swappiness" = 10 }', 'sysctl = { "vm.dirty_ra|" }', '"vm.dirty_ratio" = '),
        "option": ('NET_SCH_FQ = "y"', "TCP_CONG_BB|", "TCP_CONG_BBR = "),
        "argument": ("args = { quiet = true }", "args = { isolcp| }", "isolcpus = "),
        "variable": ('profile "calm"', 'build {\n  variables = { BB_DISKMON_D| }\n}\nprofile "calm"', "BB_DISKMON_DIRS = "),
        "field": ('thp  = "madvise"', "th|", "thp_defrag = "),
        "choice": ('thp  = "madvise"', 'thp  = "|"', '"never"'),
        "module": ('zram = "2GiB"\n  }', "}\n  modules = { nvm| }", "nvme = "),
        "section": ("cpu {\n    isolate = [4, 5]\n  }", "stor|", 'storage "'),
        "offload": ('zram = "2GiB"\n  }', '}\n  network "eth0" {\n    offloads = { "rx-gr|" }\n  }', '"rx-gro" = '),
        "package": ('zram = "2GiB"\n  }', "}\n  packages = { hto| }", "htop = "),
    },
    "config.jsonnet": {
        "board": ("board: 'orin-nano-8gb'", "board: 'or|'", "'orin-nx-16gb'"),
        "release": ("release: 'scarthgap'", "release: '|'", "'wrynose'"),
        "profile": ("use: ['calm']", "use: ['|']", "'calm'"),
        "mode": ("cpu: { isolate: [4, 5] }", "power: { default: '|' }", "'15W'"),
        "sysctl": ("sysctl: { 'vm.swappiness': 10 }", "sysctl: { 'vm.dirty_ra|' }", "'vm.dirty_ratio': "),
        "option": ("config: { NET_SCH_FQ: 'y' }", "config: { TCP_CONG_BB| }", "TCP_CONG_BBR: "),
        "argument": ("args: { quiet: true }", "args: { isolcp| }", "isolcpus: "),
        "variable": ("profiles: {", "build: { variables: { BB_DISKMON_D| } },\nprofiles: {", "BB_DISKMON_DIRS: "),
        "field": ("memory: { thp: 'madvise', zram: '2GiB' }", "memory: { th| }", "thpDefrag: "),
        "choice": ("thp: 'madvise'", "thp: '|'", "'never'"),
        "module": ("memory: { thp: 'madvise', zram: '2GiB' }", "modules: { nvm| }", "nvme: "),
        "section": ("cpu: { isolate: [4, 5] }", "stor|", "storage: "),
        "thread": ("memory: { thp: 'madvise', zram: '2GiB' }", "threads: { 'ksoft|' }", "'ksoftirqd/*': "),
        "offload": ("memory: { thp: 'madvise', zram: '2GiB' }", "network: { eth0: { offloads: { 'rx-gr|' } } }", "'rx-gro': "),
        "package": ("memory: { thp: 'madvise', zram: '2GiB' }", "packages: { hto| }", "htop: "),
        "directive": ("memory: { thp: 'madvise', zram: '2GiB' }", "services: { 'a.service': { unit: { Service: { MemoryHi| } } } }", "MemoryHigh: "),
    },
}

# What is hovered over, and parts of the answer.
HOVERED = {
    "a field": ("isolate", ["Cores", "value: \\[4, 5]", "isolcpus"]),
    "a board": ("orin-nano-8gb", ["tegra234", "6 cores", "board"]),
    "a release": ("scarthgap", ["kernel 5.15", "CUDA 12"]),
    "a profile": ("calm", ["memory = "]),
    "a sysctl of a profile": ("vm.swappiness", ["set at: NAME:LINE", "profile calm", "mm/", "targets.\"line-camera\".sysctl"]),
    "an option": ("NET_SCH_FQ", ["kept in kernel 5.15"]),
    "an argument": ("quiet", ["read by kernel 5.15", "reaches the kernel by"]),
}


def apply(text, edit):
    """The text after an edit of one range, in UTF-16 code units; the texts here are ASCII."""
    lines = text.splitlines(keepends=True)
    offset = lambda p: sum(len(line) for line in lines[:p.line]) + p.character
    return text[:offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end):]


class Answers(Session):
    async def test_completion(self):
        for name, kinds in TYPED.items():
            text = CONFIGS[name]
            self.write(f"{name}.d/{name}", text)
            uri = self.open(f"{name}.d/{name}")
            await self.diagnostics(uri)
            for kind, (was, typed, want) in kinds.items():
                with self.subTest(f"{name}: {kind}"):
                    self.assertEqual(text.count(was), 1)
                    cursor = text.replace(was, typed)
                    broken = cursor.replace("|", "", 1)
                    self.change(uri, broken)
                    got = await self.client.text_document_completion_async(lsp.CompletionParams(
                        lsp.TextDocumentIdentifier(uri), self.at(cursor, "|", after=False)))
                    inserted = {item.text_edit.new_text: item for item in got.items}
                    self.assertIn(want, inserted)
                    head, tail = typed.split("|")
                    result = apply(broken, inserted[want].text_edit)
                    self.assertIn(want, result)
                    self.assertNotIn(want.strip() + want.strip()[-1], result)

    async def test_completion_shows_facts(self):
        text = CONFIGS["config.cue"]
        self.write("config.cue", text)
        uri = self.open("config.cue")
        await self.diagnostics(uri)
        for was, typed, label, want in (
            ('sysctl: "vm.swappiness": 10', 'sysctl: "vm.swapp|"', "vm.swappiness", "0 to 200"),
            ('config: NET_SCH_FQ: "y"', "config: TCP_CONG_BB|", "TCP_CONG_BBR", "5.15"),
            ("profiles: calm", "build: variables: BB_DISKMON_D|\nprofiles: calm", "BB_DISKMON_DIRS", "acts in configuration files"),
            ("args: quiet:          true", "args: isolcp|", "isolcpus", "read by kernel 5.15"),
            ('memory: {thp: "madvise", zram: "2GiB"}', "memory: {th|}", "thp", "madvise"),
        ):
            with self.subTest(label):
                cursor = text.replace(was, typed)
                self.change(uri, cursor.replace("|", "", 1))
                got = await self.client.text_document_completion_async(lsp.CompletionParams(
                    lsp.TextDocumentIdentifier(uri), self.at(cursor, "|", after=False)))
                [item] = [i for i in got.items if i.label == label]
                self.assertIn(want, item.detail)

    async def test_no_completion_in_comments(self):
        text = "// boar\n" + CONFIGS["config.cue"]
        self.write("config.cue", text)
        uri = self.open("config.cue")
        self.assertIsNone(await self.client.text_document_completion_async(lsp.CompletionParams(
            lsp.TextDocumentIdentifier(uri), self.at(text, "// boar"))))

    async def test_hover(self):
        for name, text in CONFIGS.items():
            self.write(f"{name}.d/{name}", text)
            uri = self.open(f"{name}.d/{name}")
            for kind, (mark, wants) in HOVERED.items():
                with self.subTest(f"{name}: {kind}"):
                    got = await self.client.text_document_hover_async(lsp.HoverParams(
                        lsp.TextDocumentIdentifier(uri), self.at(text, mark)))
                    line = text[:text.index(mark)].count("\n") + 1
                    for want in wants:
                        self.assertIn(want.replace("NAME", name).replace("LINE", str(line)), got.contents.value)
                    self.assertEqual(text.splitlines()[got.range.start.line][got.range.start.character:got.range.end.character].strip("'\""), mark)

    async def test_hover_shows_what_the_kernel_keeps(self):
        text = CONFIGS["config.cue"].replace("NET_SCH_FQ", "TCP_CONG_BBR")
        self.write("config.cue", text)
        uri = self.open("config.cue")
        got = await self.client.text_document_hover_async(lsp.HoverParams(lsp.TextDocumentIdentifier(uri), self.at(text, "TCP_CONG")))
        self.assertRegex(got.contents.value, "kernel: .*dropped|kernel: .*lost")

    async def test_hover_while_the_text_does_not_parse(self):
        text = CONFIGS["config.cue"]
        self.write("config.cue", text)
        uri = self.open("config.cue")
        await self.diagnostics(uri)
        broken = text + "targets: {{"
        self.change(uri, broken)
        got = await self.client.text_document_hover_async(lsp.HoverParams(lsp.TextDocumentIdentifier(uri), self.at(broken, "vm.swappiness")))
        self.assertIn("value: 10", got.contents.value)

    async def actions(self, uri, text, mark, only=None):
        return await self.client.text_document_code_action_async(lsp.CodeActionParams(
            lsp.TextDocumentIdentifier(uri), self.span(text, mark), lsp.CodeActionContext(diagnostics=[], only=only)))

    def fixed_by_vet(self, name, text):
        self.write(f"vet/{name}/{name}", text)
        self.run_yoctune("vet", f"vet/{name}", "--fix")
        fixed = (self.root / "vet" / name / name).read_text()
        self.assertNotEqual(fixed, text)
        return fixed

    async def test_quick_fix_is_that_of_vet(self):
        for name, text in CONFIGS.items():
            q = "'" if name.endswith("jsonnet") else '"'
            for kind, (was, wrong, mark) in {
                "a value": (f"{q}madvise{q}", f"{q}madvice{q}", f"{q}madvice{q}"),
                "a name": ("vm.swappiness", "vm.swapiness", f"{q}vm.swapiness{q}"),
                "a further option": ("NET_SCH_FQ", "TCP_CONG_BBR", f"{q}y{q}"),
                "a field": ("zram", "zramm", "zramm"),
            }.items():
                with self.subTest(f"{name}: {kind}"):
                    changed = text.replace(was, wrong)
                    self.write(f"{name}/{kind}/{name}", text)
                    uri = self.open(f"{name}/{kind}/{name}", changed)
                    [action] = await self.actions(uri, changed, mark)
                    self.assertEqual((action.kind, action.is_preferred), (lsp.CodeActionKind.QuickFix, True))
                    [(where, [edit])] = action.edit.changes.items()
                    self.assertEqual(where, uri)
                    fixed = apply(changed, edit)
                    self.assertEqual(fixed, self.fixed_by_vet(name, changed))
                    if kind != "a further option":
                        self.assertEqual(fixed, text)
                    self.change(uri, fixed)
                    self.assertFalse(await self.actions(uri, fixed, fixed.splitlines()[edit.range.start.line]))

    async def test_all_fixes_at_once(self):
        for name, text in CONFIGS.items():
            with self.subTest(name):
                changed = text.replace("madvise", "madvice").replace("vm.swappiness", "vm.swapiness").replace("NET_SCH_FQ", "TCP_CONG_BBR")
                self.write(f"{name}.d/{name}", changed)
                uri = self.open(f"{name}.d/{name}")
                [action] = await self.actions(uri, changed, "scarthgap", only=[lsp.CodeActionKind.SourceFixAll])
                self.assertEqual(apply(changed, action.edit.changes[uri][0]), self.fixed_by_vet(name, changed))

    async def test_quick_fix_in_an_imported_file(self):
        self.write("a/lib/memory.libsonnet", "{ thp: 'madvice' }\n")
        self.write("a/config.jsonnet", CONFIGS["config.jsonnet"].replace("{ thp: 'madvise', zram: '2GiB' }", "import 'lib/memory.libsonnet'"))
        await self.diagnostics(self.open("a/config.jsonnet"))
        uri = self.open("a/lib/memory.libsonnet")
        [action] = await self.actions(uri, "{ thp: 'madvice' }\n", "'madvice'")
        self.assertEqual(apply("{ thp: 'madvice' }\n", action.edit.changes[uri][0]), "{ thp: 'madvise' }\n")

    async def definition(self, uri, text, mark):
        return await self.client.text_document_definition_async(lsp.DefinitionParams(lsp.TextDocumentIdentifier(uri), self.at(text, mark)))

    async def test_definition(self):
        for name, text in CONFIGS.items():
            with self.subTest(name):
                self.write(f"{name}.d/{name}", text)
                uri = self.open(f"{name}.d/{name}")
                # The name of a profile leads to the profile.
                [where] = await self.definition(uri, text, "calm")
                label = "profiles: calm" if name.endswith("cue") else 'profile "calm' if name.endswith("hcl") else "    calm"
                self.assertEqual((where.uri, where.range.start.line), (uri, self.at(text, label).line))
                # A value that overrides a profile's leads to the profile's.
                own = {
                    "config.cue": ("cpu: isolate: [4, 5]", 'cpu: isolate: [4, 5]\n\tsysctl: "vm.swappiness": 20'),
                    "config.hcl": ("kernel {", 'sysctl = { "vm.swappiness" = 20 }\n  kernel {'),
                    "config.jsonnet": ("cpu: {", "sysctl: { 'vm.swappiness': 20 },\n      cpu: {"),
                }[name]
                changed = text.replace(*own)
                self.change(uri, changed)
                [where] = await self.definition(uri, changed, "vm.swappiness")
                self.assertEqual(changed.splitlines()[where.range.start.line][where.range.start.character:where.range.end.character], "10")
                # The profile's value leads to what is in force instead.
                second = changed.replace("vm.swappiness", "vm_swappiness", 1)
                places = await self.client.text_document_definition_async(lsp.DefinitionParams(
                    lsp.TextDocumentIdentifier(uri), self.at(second, "vm.swappiness")))
                self.assertEqual([changed.splitlines()[p.range.start.line][p.range.start.character:p.range.end.character] for p in places], ["20"])

    async def test_modes_in_a_profile_named_like_a_section(self):
        text = CONFIGS["config.cue"].replace("profiles: calm", 'profiles: power: power: {default: "QUIET", modes: QUIET: from: "15W"}\nprofiles: calm')
        text = text.replace('use: ["calm"]', 'use: ["calm", "power"]')
        self.write("config.cue", text)
        uri = self.open("config.cue")
        got = await self.client.text_document_hover_async(lsp.HoverParams(lsp.TextDocumentIdentifier(uri), self.at(text, "QUIET")))
        self.assertIn('from = "15W"', got.contents.value)
        [where] = await self.definition(uri, text, "QUIET")
        line = text.splitlines()[where.range.start.line]
        self.assertTrue(line[where.range.start.character:].startswith("QUIET: from"), line)

    async def test_definition_in_another_file(self):
        head, _, rest = CONFIGS["config.cue"].partition("profiles:")
        self.write("a/config.cue", head)
        other = self.write("a/profiles.cue", "package box\n\nprofiles:" + rest)
        uri = self.open("a/config.cue")
        [where] = await self.definition(uri, head, "calm")
        self.assertEqual((where.uri, where.range.start.line), (other, 2))

    async def test_outline(self):
        for name, text in CONFIGS.items():
            with self.subTest(name):
                self.write(f"{name}.d/{name}", text)
                uri = self.open(f"{name}.d/{name}")
                symbols = await self.client.text_document_document_symbol_async(lsp.DocumentSymbolParams(lsp.TextDocumentIdentifier(uri)))
                names = {s.name: [c.name for c in s.children] for s in symbols}
                self.assertEqual(list(names), ["layer", "targets", "profiles"])
                self.assertEqual((names["targets"], names["profiles"]), (["line-camera"], ["calm"]))

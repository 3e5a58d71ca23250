import time

from lsprotocol import types as lsp

from session import CONFIGS, Session


class Endless(Session):
    """CUE cannot be interrupted; the process that evaluates is."""

    async def test_session_goes_on_after_an_evaluation_without_end(self):
        text = CONFIGS["config.cue"]
        self.write("config.cue", text)
        uri = self.open("config.cue")
        await self.diagnostics(uri)
        endless = '_x: {for a in list.Range(0, 3000, 1) for b in list.Range(0, 3000, 1) {"x\\(a)": y: "\\(b)"}}'
        started = time.time()
        self.change(uri, text.replace("package box\n", f'package box\n\nimport "list"\n\n{endless}\n'))
        await self.log_line("the next change starts another evaluation", seconds=90)
        self.assertEqual([d.code for d in self.published[uri].diagnostics], ["YT0007"])
        self.assertLess(time.time() - started, 60)
        self.change(uri, text)
        self.assertEqual([d for d in await self.diagnostics(uri) if d.severity == lsp.DiagnosticSeverity.Error], [])

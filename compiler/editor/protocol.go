package editor

import "encoding/json"

// The parts of the Language Server Protocol 3.17 that the server uses. Field names and
// values are those of the specification.

type (
	initializeParams struct {
		RootURI          string            `json:"rootUri"`
		WorkspaceFolders []workspaceFolder `json:"workspaceFolders"`
		ClientInfo       struct {
			Name string `json:"name"`
		} `json:"clientInfo"`
		Capabilities clientCapabilities `json:"capabilities"`
	}
	workspaceFolder struct {
		URI string `json:"uri"`
	}
	clientCapabilities struct {
		General struct {
			PositionEncodings []string `json:"positionEncodings"`
		} `json:"general"`
		Workspace struct {
			DidChangeWatchedFiles struct {
				DynamicRegistration bool `json:"dynamicRegistration"`
			} `json:"didChangeWatchedFiles"`
		} `json:"workspace"`
	}

	initializeResult struct {
		Capabilities serverCapabilities `json:"capabilities"`
		ServerInfo   struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"serverInfo"`
	}
	serverCapabilities struct {
		PositionEncoding string `json:"positionEncoding"`
		TextDocumentSync struct {
			OpenClose bool `json:"openClose"`
			Change    int  `json:"change"` // 1: the full text
			Save      bool `json:"save"`
		} `json:"textDocumentSync"`
		CompletionProvider struct {
			TriggerCharacters []string `json:"triggerCharacters"`
		} `json:"completionProvider"`
		HoverProvider          bool              `json:"hoverProvider"`
		DefinitionProvider     bool              `json:"definitionProvider"`
		DocumentSymbolProvider bool              `json:"documentSymbolProvider"`
		CodeActionProvider     codeActionOptions `json:"codeActionProvider"`
	}

	textDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	}
	didOpenParams struct {
		TextDocument textDocument `json:"textDocument"`
	}
	didChangeParams struct {
		TextDocument   textDocument `json:"textDocument"`
		ContentChanges []struct {
			Range *span  `json:"range"`
			Text  string `json:"text"`
		} `json:"contentChanges"`
	}
	documentParams struct {
		TextDocument textDocument `json:"textDocument"`
	}
	watchedFilesParams struct {
		Changes []struct {
			URI string `json:"uri"`
		} `json:"changes"`
	}

	// place is a position: a line and, within it, an offset in the units that were agreed on.
	place struct {
		Line      int `json:"line"`
		Character int `json:"character"`
	}
	span struct {
		Start place `json:"start"`
		End   place `json:"end"`
	}
	location struct {
		URI   string `json:"uri"`
		Range span   `json:"range"`
	}

	positionParams struct {
		TextDocument textDocument `json:"textDocument"`
		Position     place        `json:"position"`
	}
	completionList struct {
		IsIncomplete bool             `json:"isIncomplete"`
		Items        []completionItem `json:"items"`
	}
	completionItem struct {
		Label         string   `json:"label"`
		Kind          int      `json:"kind"`
		Detail        string   `json:"detail,omitempty"`
		Documentation *markup  `json:"documentation,omitempty"`
		SortText      string   `json:"sortText"`
		FilterText    string   `json:"filterText"`
		TextEdit      textEdit `json:"textEdit"`
	}
	markup struct {
		Kind  string `json:"kind"`
		Value string `json:"value"`
	}
	textEdit struct {
		Range   span   `json:"range"`
		NewText string `json:"newText"`
	}
	hover struct {
		Contents markup `json:"contents"`
		Range    span   `json:"range"`
	}

	codeActionOptions struct {
		Kinds []string `json:"codeActionKinds"`
	}
	codeActionParams struct {
		TextDocument textDocument `json:"textDocument"`
		Range        span         `json:"range"`
		Context      struct {
			Only []string `json:"only"`
		} `json:"context"`
	}
	codeAction struct {
		Title       string        `json:"title"`
		Kind        string        `json:"kind"`
		Diagnostics []diagnostic  `json:"diagnostics,omitempty"`
		IsPreferred bool          `json:"isPreferred,omitempty"`
		Edit        workspaceEdit `json:"edit"`
	}
	workspaceEdit struct {
		Changes map[string][]textEdit `json:"changes"`
	}
	documentSymbol struct {
		Name           string           `json:"name"`
		Detail         string           `json:"detail,omitempty"`
		Kind           int              `json:"kind"`
		Range          span             `json:"range"`
		SelectionRange span             `json:"selectionRange"`
		Children       []documentSymbol `json:"children,omitempty"`
	}

	diagnostic struct {
		Range              span             `json:"range"`
		Severity           int              `json:"severity"`
		Code               string           `json:"code"`
		CodeDescription    *codeDescription `json:"codeDescription,omitempty"`
		Source             string           `json:"source"`
		Message            string           `json:"message"`
		RelatedInformation []related        `json:"relatedInformation,omitempty"`
	}
	codeDescription struct {
		Href string `json:"href"`
	}
	related struct {
		Location location `json:"location"`
		Message  string   `json:"message"`
	}
	publishParams struct {
		URI         string       `json:"uri"`
		Version     *int         `json:"version,omitempty"`
		Diagnostics []diagnostic `json:"diagnostics"`
	}

	messageParams struct {
		Type    int    `json:"type"`
		Message string `json:"message"`
	}
	cancelParams struct {
		ID json.RawMessage `json:"id"`
	}
	registrationParams struct {
		Registrations []registration `json:"registrations"`
	}
	registration struct {
		ID      string `json:"id"`
		Method  string `json:"method"`
		Options any    `json:"registerOptions"`
	}
	watchOptions struct {
		Watchers []watcher `json:"watchers"`
	}
	watcher struct {
		Glob string `json:"globPattern"`
	}
)

// Kinds of code actions.
const (
	quickFix = "quickfix"
	fixAll   = "source.fixAll.yoctune"
)

// Values of messageParams.Type.
const (
	logWarning = 2
	logInfo    = 3
)

// Error codes that JSON-RPC does not define.
const (
	codeNotInitialized   = -32002
	codeRequestCancelled = -32800
	codeRequestFailed    = -32803
)

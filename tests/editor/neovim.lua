-- A session of Neovim's own client with `yoctune lsp`:
--   YOCTUNE=… nvim --headless --clean -S tests/editor/neovim.lua FILE...
-- Each file holds one wrong value, "madvice", and uses the profile calm.
local failed = false

local function check(ok, what)
	print((ok and "ok      " or "FAILED  ") .. what .. "\n")
	failed = failed or not ok
end

local function request(buffer, method, params)
	local replies = vim.lsp.buf_request_sync(buffer, method, params, 20000) or {}
	for _, reply in pairs(replies) do
		return reply.result
	end
end

-- at moves the cursor to a text and returns the parameters of a request about it.
local function at(text)
	vim.fn.cursor(1, 1)
	vim.fn.search("\\V" .. text, "c")
	return vim.lsp.util.make_position_params(0, "utf-16")
end

local function errors(buffer)
	return vim.diagnostic.get(buffer, { severity = vim.diagnostic.severity.ERROR })
end

local function session(name)
	vim.cmd("edit " .. vim.fn.fnameescape(name))
	local buffer = vim.api.nvim_get_current_buf()
	local id = vim.lsp.start_client({ name = "yoctune", cmd = { os.getenv("YOCTUNE"), "lsp" }, root_dir = vim.fn.fnamemodify(name, ":h") })
	vim.lsp.buf_attach_client(buffer, id)
	local function say(ok, what) check(ok, vim.fn.fnamemodify(name, ":t") .. ": " .. what) end

	say(vim.wait(20000, function() return #errors(buffer) == 1 end), "one error is shown")
	local found = errors(buffer)[1] or {}
	say(found.code == "YT0103" and found.source == "yoctune", "it is that of vet")
	local line = vim.api.nvim_buf_get_lines(buffer, found.lnum or 0, (found.lnum or 0) + 1, false)[1]
	say(line:sub(found.col + 1, found.end_col):match("madvice") ~= nil, "it is under the value")

	at("madvice")
	local params = vim.lsp.util.make_range_params(0, "utf-16")
	params.context = { diagnostics = {} }
	local action = (request(buffer, "textDocument/codeAction", params) or {})[1]
	say(action ~= nil, "a quick fix is offered")
	if action then
		vim.lsp.util.apply_workspace_edit(action.edit, "utf-16")
	end
	say(vim.wait(20000, function() return #errors(buffer) == 0 end), "the error has gone")

	local hover = request(buffer, "textDocument/hover", at("vm.swappiness"))
	say(hover ~= nil and hover.contents.value:match("profile calm") ~= nil, "hover names the profile")
	local where = request(buffer, "textDocument/definition", at("calm"))
	say(where ~= nil and where[1] ~= nil and where[1].range.start.line > 10, "the definition of the profile is found")
	local list = request(buffer, "textDocument/completion", at("orin-nano"))
	local labels = {}
	for _, item in ipairs(list and list.items or {}) do
		labels[item.label] = true
	end
	say(labels["agx-orin-64gb"] == true, "boards are completed")

	vim.lsp.stop_client(id)
	say(vim.wait(20000, function() return #vim.lsp.get_active_clients() == 0 end), "the server shuts down")
	vim.cmd("bdelete!")
end

for _, name in ipairs(vim.fn.argv()) do
	local ok, err = pcall(session, name)
	if not ok then
		check(false, err)
	end
end
vim.cmd(failed and "cquit 1" or "quitall!")

-- `flashgrep lsp` in a real Neovim (0.11 or later), set up as the plugin's help says, in the project that is the current
-- folder: definition, references, rename, symbols of the workspace. Called as run.lua.

local uv = vim.uv or vim.loop
local root = uv.fs_realpath(uv.cwd())
local WAIT = tonumber(vim.env.TEST_WAIT or "20000")

local function equal(found, expected)
  if not vim.deep_equal(found, expected) then
    error(("found %s, expected %s"):format(vim.inspect(found), vim.inspect(expected)), 2)
  end
end

local function ask(method, more)
  local params = vim.tbl_extend("force", vim.lsp.util.make_position_params(0, "utf-16"), more or {})
  local answers, problem = vim.lsp.buf_request_sync(0, method, params, WAIT)
  assert(answers, problem)
  local _, answer = next(answers)
  assert(answer and not answer.err, vim.inspect(answer))
  return answer.result
end

local function places(locations)
  local found = vim.tbl_map(function(one)
    local start = (one.range or one.targetSelectionRange).start
    local path = vim.uri_to_fname(one.uri or one.targetUri):sub(#root + 2)
    return ("%s:%d:%d"):format(path, start.line + 1, start.character + 1)
  end, vim.islist(locations) and locations or { locations })
  table.sort(found)
  return found
end

if not vim.lsp.enable then
  io.stdout:write("left out: this Neovim is older than 0.11\n")
  vim.cmd("qall!")
end

local function run()
  vim.lsp.enable("flashgrep")
  vim.cmd("filetype on")
  vim.cmd("edit src/use.py")
  assert(vim.wait(WAIT, function()
    local client = vim.lsp.get_clients({ bufnr = 0, name = "flashgrep" })[1]
    return client and client.initialized
  end, 5), "the server did not start")
  vim.api.nvim_win_set_cursor(0, { 4, 12 })
  equal(places(ask("textDocument/definition")), { "src/parcel.py:1:5" })
  local uses = places(ask("textDocument/references", { context = { includeDeclaration = true } }))
  equal(uses, { "src/parcel.py:1:5", "src/use.py:1:20", "src/use.py:4:11" })
  equal(ask("workspace/symbol", { query = "find_par" })[1].name, "find_parcel")
  vim.lsp.buf.rename("look_up_parcel")
  assert(vim.wait(WAIT, function()
    return vim.api.nvim_buf_get_lines(0, 3, 4, false)[1] == "    print(look_up_parcel(7))"
  end, 5), "nothing was renamed")
  vim.cmd("edit src/parcel.py")
  equal(vim.api.nvim_buf_get_lines(0, 0, 1, false), { "def look_up_parcel(number):" })
end

local fine, problem = xpcall(run, debug.traceback)
io.stdout:write(fine and "ok flashgrep lsp: definition, references, symbols, rename\n" or "FAILED " .. problem .. "\n")
io.stdout:flush()
vim.cmd(fine and "qall!" or "cquit 1")

--- Search and replace in a project: shows a diff, and on request writes it.
---
--- The daemon writes all changes or none, and only if the files are unchanged since the diff.

local client = require("flashgrep.client")
local sources = require("flashgrep.sources")

local M = {}

--- Most edits in one replacement, the daemon's limit for a batch: files for a text, lines for a regular expression.
M.MOST = 500

---@class flashgrep.Replacement
---@field search string
---@field replacement string
---@field include string[]? globs
---@field mode "literal"|"regex"?

--- Return a line with its matches replaced; `spans`: first byte and end, from 0.
function M.replace_line(text, spans, replacement)
  local parts, at = {}, 1
  for _, span in ipairs(spans) do
    table.insert(parts, text:sub(at, span[1]))
    table.insert(parts, replacement)
    at = span[2] + 1
  end
  return table.concat(parts) .. text:sub(at)
end

--- Return the edits for an answer of `query`.
local function make_operations(ask, result)
  local operations = {}
  for _, hit in ipairs(result.results) do
    local operation = { path = hit.file_path, path_bytes = hit.file_path_bytes }
    if ask.mode ~= "regex" then
      operation.old_text, operation.new_text, operation.replace_all = ask.search, ask.replacement, true
    elseif hit.cut or (hit.text_column or 1) ~= 1 or hit.spans_left_out then
      return nil, ("%s:%d: the line is too long to replace"):format(hit.file_path, hit.start_line)
    else
      operation.start_line, operation.end_line = hit.start_line, hit.start_line
      operation.replacement = M.replace_line(hit.text, sources.spans_of(hit), ask.replacement) .. "\n"
      operation.precondition = { expected_start_line_text = hit.text }
    end
    table.insert(operations, operation)
  end
  return operations
end

--- Find the edits: files for a text, lines for a regular expression.
---@param ask flashgrep.Replacement
---@param callback fun(problem: string?, operations: table[]?)
local function find_operations(connection, ask, callback)
  local is_regex = ask.mode == "regex"
  connection:request("query", {
    query = ask.search,
    mode = ask.mode or "literal",
    case = "sensitive",
    output = is_regex and "lines" or "files",
    spans = is_regex,
    position_encoding = "utf-8",
    order = "path",
    include = ask.include,
    limit = M.MOST,
    max_tokens = 1000000,
  }, function(error, result)
    if error then
      callback(error.message)
    elseif result.next then
      callback(("more than %d %s match: narrow it by a glob"):format(M.MOST, is_regex and "lines" or "files"))
    elseif not result.coverage.complete then
      callback("not all files were searched; try again")
    else
      local operations, problem = make_operations(ask, result)
      callback(problem, operations)
    end
  end)
end

--- Return the path of a buffer with unsaved changes among the files to change, or nil.
local function find_unsaved(root, operations)
  local paths = {}
  for _, operation in ipairs(operations) do
    paths[root .. "/" .. operation.path] = true
  end
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buffer)
    if vim.bo[buffer].modified and paths[name] then
      return name
    end
  end
end

--- Plan a replacement: the callback gets a unified diff, and a function that applies it.
---@param root string
---@param ask flashgrep.Replacement
---@param callback fun(problem: string?, plan: {diff: string, files: integer, apply: fun(done: fun(problem: string?))}?)
function M.plan(root, ask, callback)
  local connection = client.get(root)
  local operations, unsaved

  local function send(dry_run, done)
    connection:request("batch_write_code", { operations = operations, dry_run = dry_run }, function(error, result)
      if error then
        return done(error.message)
      end
      for _, one in ipairs(result.results) do
        if one.status == "failed" or one.status == "conflict" then
          return done(("%s: %s; nothing was written"):format(one.file_path, one.message or one.reason_code))
        end
      end
      done(nil, result)
    end)
  end

  local function apply(done)
    send(false, function(problem)
      vim.cmd("checktime")
      done(problem)
    end)
  end

  find_operations(connection, ask, function(problem, found)
    operations = found
    unsaved = found and find_unsaved(root, found)
    if problem or #found == 0 then
      return callback(problem or "nothing matches")
    elseif unsaved then
      return callback(unsaved .. " has unsaved changes; save it first")
    end
    send(true, function(refused, result)
      if refused then
        return callback(refused)
      end
      local files = {}
      for at, one in ipairs(result.results) do
        local hash = { expected_file_hash = one.file_hash_before }
        operations[at].precondition = vim.tbl_extend("force", operations[at].precondition or {}, hash)
        files[one.file_path] = true
      end
      local rest = result.diff_truncated and "\n[the diff is truncated]\n" or ""
      callback(nil, { diff = result.diff .. rest, files = vim.tbl_count(files), apply = apply })
    end)
  end)
end

--- Show a plan in its own buffer; `<CR>` applies it, `q` discards it.
local function show(plan)
  vim.cmd("botright new")
  local buffer = vim.api.nvim_get_current_buf()
  vim.bo[buffer].buftype, vim.bo[buffer].bufhidden = "nofile", "wipe"
  vim.bo[buffer].filetype = "diff"
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(plan.diff, "\n"))
  vim.bo[buffer].modifiable = false
  vim.notify(("flashgrep: %d files would change; <CR> writes them, q cancels"):format(plan.files))
  vim.keymap.set("n", "q", "<Cmd>bwipeout<CR>", { buffer = buffer })
  vim.keymap.set("n", "<CR>", function()
    plan.apply(function(problem)
      if problem then
        vim.notify("flashgrep: " .. problem, vim.log.levels.ERROR)
      else
        vim.notify(("flashgrep: %d files changed"):format(plan.files))
        if vim.api.nvim_buf_is_valid(buffer) then
          vim.api.nvim_buf_delete(buffer, { force = true })
        end
      end
    end)
  end, { buffer = buffer })
end

--- Ask for the text, replacement and files unless `words` has them, then show the diff.
---@param words string[] search, replacement, globs
function M.start(words)
  local root = client.find_root()
  local function go(ask)
    M.plan(root, ask, function(problem, plan)
      if problem then
        vim.notify("flashgrep: " .. problem, vim.log.levels.WARN)
      else
        show(plan)
      end
    end)
  end
  if #words >= 2 then
    go({ search = words[1], replacement = words[2], include = words[3] and { unpack(words, 3) } })
    return
  end
  vim.ui.input({ prompt = "Replace: ", default = words[1] or vim.fn.expand("<cword>") }, function(search)
    if not search or search == "" then
      return
    end
    vim.ui.input({ prompt = ("Replace %s by: "):format(search) }, function(replacement)
      if replacement then
        go({ search = search, replacement = replacement })
      end
    end)
  end)
end

return M

-- The plugin in a real Neovim against a real daemon, in the project that is the current folder:
--   nvim --headless -u NONE --cmd "set runtimepath^=editors/nvim" -c "luafile editors/nvim/tests/run.lua"
-- Prints a line for each test; the exit status is 1 if one failed. TEST_ONLY: the one to run.

vim.cmd("runtime! plugin/flashgrep.lua")

local uv = vim.uv or vim.loop
local flashgrep = require("flashgrep")
local client = require("flashgrep.client")
local live = require("flashgrep.live")
local sources = require("flashgrep.sources")

local WAIT = tonumber(vim.env.TEST_WAIT or "20000")
local root = uv.fs_realpath(uv.cwd())
local failed = 0

flashgrep.setup({ picker = "own" })

local function wait_for(what, is_true)
  if not vim.wait(WAIT, is_true, 2) then
    error("waited in vain for " .. what, 2)
  end
end

local function equal(found, expected)
  if not vim.deep_equal(found, expected) then
    error(("found %s, expected %s"):format(vim.inspect(found), vim.inspect(expected)), 2)
  end
end

local function ask(source, query)
  local items, problem, done
  live.new(source, root):ask(query, function(...)
    items, problem = ...
    done = true
  end)
  wait_for("an answer", function()
    return done
  end)
  assert(not problem, problem)
  return items
end

local function places(items)
  return vim.tbl_map(function(item)
    return ("%s:%d:%d"):format(item.path, item.line, item.column)
  end, items)
end

local function write(path, text)
  local file = assert(io.open(root .. "/" .. path, "w"))
  file:write(text)
  file:close()
end

local function read(path)
  local file = assert(io.open(root .. "/" .. path))
  local text = file:read("*a")
  file:close()
  return text
end

local function type_keys(keys)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys, true, false, true), "xt", false)
end

local tests = {}

function tests.the_root_is_found_from_a_file_within()
  equal(client.find_root(root .. "/src/use.py"), root)
end

function tests.live_grep_finds_lines_with_their_matches()
  equal(places(ask(sources.grep(), "find_parcel")), { "src/parcel.py:1:5", "src/use.py:1:20", "src/use.py:4:11" })
end

function tests.all_matches_of_a_line_are_told_in_bytes()
  write("src/wide.py", 'tree = "🌳"; tree += tree_size\n')
  local item = ask(sources.grep({ include = { "wide.py" } }), "tree")[1]
  local shown = vim.tbl_map(function(span)
    return item.text:sub(span[1] + 1, span[2])
  end, item.spans)
  equal(shown, { "tree", "tree", "tree" })
  os.remove(root .. "/src/wide.py")
end

function tests.an_expression_is_replaced_where_it_matches()
  write("src/old.py", "a_old = 1\nb_old = '🌳' + a_old  # old")
  local done
  local question = { search = [[[ab]_old\b]], replacement = "new", mode = "regex", include = { "old.py" } }
  require("flashgrep.replace").plan(root, question, function(problem, plan)
    assert(not problem, problem)
    plan.apply(function(refused)
      done = refused or true
    end)
  end)
  wait_for("the change", function()
    return done
  end)
  equal(done, true)
  equal(read("src/old.py"), "new = 1\nnew = '🌳' + new  # old")
  os.remove(root .. "/src/old.py")
end

function tests.a_broken_expression_is_told()
  local problem
  live.new(sources.grep({ mode = "regex" }), root):ask("(", function(_, said)
    problem = said
  end)
  wait_for("the problem", function()
    return problem
  end)
  assert(problem:find("regular expression", 1, true) or problem:find("pattern", 1, true) or #problem > 0)
end

function tests.files_symbols_and_meaning_are_found()
  equal(ask(sources.files(), "parcel")[1].path, "src/parcel.py")
  equal(places(ask(sources.symbols(), "find_parcel"))[1], "src/parcel.py:1:5")
  equal(ask(sources.meaning(), "where are parcels looked up")[1].path, "src/parcel.py")
end

function tests.callers_are_found()
  equal(places(ask(sources.callers("find_parcel"), "")), { "src/use.py:4:1" })
end

function tests.typing_fast_answers_the_last_question_alone()
  local session = live.new(sources.grep(), root)
  local answered = {}
  local text = "find_parcel"
  for length = 1, #text do
    session:ask(text:sub(1, length), function(items)
      table.insert(answered, { length, #items })
    end)
  end
  wait_for("the last answer", function()
    return #answered > 0
  end)
  equal(answered, { { #text, 3 } })
  equal(vim.tbl_count(client.get(root).pending), 0)
end

function tests.the_picker_shows_results_and_goes_to_the_one_chosen()
  vim.cmd("enew!")
  local picker = flashgrep.pick(sources.grep(), { query = "def find" })
  wait_for("results", function()
    return #picker.items == 1
  end)
  equal(vim.api.nvim_buf_get_lines(picker.list, 0, -1, false), { "src/parcel.py:1: def find_parcel(number):" })
  equal(vim.api.nvim_buf_get_lines(picker.preview, 0, 1, false), { "def find_parcel(number):" })
  for _, buffer in ipairs({ picker.list, picker.preview }) do
    local space = vim.api.nvim_get_namespaces().flashgrep
    local groups = vim.tbl_map(function(mark)
      return mark[4].hl_group
    end, vim.api.nvim_buf_get_extmarks(buffer, space, 0, -1, { details = true }))
    assert(vim.tbl_contains(groups, "Search"), vim.inspect(groups))
  end
  picker:choose()
  equal(vim.api.nvim_buf_get_name(0), root .. "/src/parcel.py")
  equal(vim.api.nvim_win_get_cursor(0), { 1, 0 })
  equal(#vim.api.nvim_list_wins(), 1)
end

function tests.the_definition_of_what_is_under_the_cursor_is_gone_to()
  vim.cmd("edit src/use.py")
  vim.api.nvim_win_set_cursor(0, { 4, 12 })
  vim.cmd("Flashgrep definition")
  wait_for("the definition", function()
    return vim.api.nvim_buf_get_name(0) == root .. "/src/parcel.py"
  end)
  equal(vim.api.nvim_win_get_cursor(0), { 1, 4 })
end

function tests.unsaved_text_is_found_by_this_editor_alone()
  vim.cmd("edit src/use.py")
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "weigh_parcel = find_parcel  # naïve" })
  equal(places(ask(sources.grep(), "weigh_parcel")), { "src/use.py:1:1" })
  equal(#ask(sources.grep(), "find_parcel"), 4)
  equal(places(ask(sources.symbols(), "weigh_parcel"))[1], "src/use.py:1:1")
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { "sort_parcel = 1" })
  equal(#ask(sources.grep(), "weigh_parcel"), 0)
  equal(#ask(sources.grep(), "sort_parcel"), 1)
  vim.fn.system({ "flashgrep", "query", "sort_parcel" })
  equal(vim.v.shell_error, 1)
  vim.cmd("edit!")
  equal(#ask(sources.grep(), "sort_parcel"), 0)
end

function tests.unsaved_text_is_sent_again_over_the_next_connection()
  vim.cmd("edit src/use.py")
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "weigh_parcel = 1" })
  equal(#ask(sources.grep(), "weigh_parcel"), 1)
  client.get(root):finish("dropped by the test")
  equal(#ask(sources.grep(), "weigh_parcel"), 1)
  vim.cmd("edit!")
end

function tests.references_fill_the_quickfix_list()
  vim.cmd("edit src/use.py")
  vim.api.nvim_win_set_cursor(0, { 4, 12 })
  vim.cmd("Flashgrep references")
  wait_for("the list", function()
    return #vim.fn.getqflist() == 3
  end)
  local lines = vim.tbl_map(function(entry)
    return vim.fn.fnamemodify(vim.api.nvim_buf_get_name(entry.bufnr), ":t") .. ":" .. entry.lnum
  end, vim.fn.getqflist())
  equal(lines, { "parcel.py:1", "use.py:1", "use.py:4" })
  vim.cmd("cclose")
end

function tests.replacing_shows_the_difference_and_writes_on_demand()
  write("src/old.py", "weight_old = 1\nprint(weight_old, weight_old)\n")
  vim.cmd("Flashgrep replace weight_old weight_new")
  wait_for("the difference", function()
    return vim.bo.filetype == "diff"
  end)
  local shown = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  assert(shown:find("+print(weight_new, weight_new)", 1, true), shown)
  equal(read("src/old.py"), "weight_old = 1\nprint(weight_old, weight_old)\n")
  type_keys("<CR>")
  wait_for("the change", function()
    return read("src/old.py") == "weight_new = 1\nprint(weight_new, weight_new)\n"
  end)
  wait_for("the buffer to go", function()
    return vim.bo.filetype ~= "diff"
  end)
  os.remove(root .. "/src/old.py")
end

function tests.a_file_that_changed_after_the_difference_is_not_written()
  write("src/old.py", "height_old = 1\n")
  local plan
  require("flashgrep.replace").plan(root, { search = "height_old", replacement = "height_new" }, function(problem, found)
    assert(not problem, problem)
    plan = found
  end)
  wait_for("the plan", function()
    return plan
  end)
  write("src/old.py", "height_old = 2\n")
  local refused
  plan.apply(function(problem)
    refused = problem or false
  end)
  wait_for("the refusal", function()
    return refused ~= nil
  end)
  assert(refused and refused:find("nothing was written", 1, true), tostring(refused))
  equal(read("src/old.py"), "height_old = 2\n")
  os.remove(root .. "/src/old.py")
end

function tests.a_file_with_unsaved_changes_is_not_replaced_in()
  write("src/old.py", "depth_old = 1\n")
  vim.cmd("edit src/old.py")
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "# more" })
  local said
  require("flashgrep.replace").plan(root, { search = "depth_old", replacement = "depth_new" }, function(problem)
    said = problem
  end)
  wait_for("the refusal", function()
    return said
  end)
  assert(said:find("unsaved changes", 1, true), said)
  vim.cmd("bwipeout!")
  os.remove(root .. "/src/old.py")
end

function tests.the_client_lives_on_when_its_connection_ends()
  local connection = client.get(root)
  equal(#ask(sources.grep(), "find_parcel"), 3)
  connection.source:read_stop()
  connection:finish("dropped by the test")
  equal(#ask(sources.grep(), "find_parcel"), 3)
end

function tests.the_health_check_speaks()
  vim.cmd("checkhealth flashgrep")
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  assert(text:find("picker: own", 1, true), text)
  assert(text:find(": [1-9]%d* files, "), text)
  vim.cmd("bwipeout!")
end

local only = vim.env.TEST_ONLY
local names = vim.tbl_keys(tests)
table.sort(names)
for _, name in ipairs(names) do
  if not only or only == name then
    local began = uv.hrtime()
    local fine, problem = xpcall(tests[name], debug.traceback)
    failed = failed + (fine and 0 or 1)
    local took = (uv.hrtime() - began) / 1e6
    io.stdout:write(("%s %s (%.0f ms)\n%s"):format(fine and "ok" or "FAILED", name, took, fine and "" or problem .. "\n"))
  end
end
io.stdout:flush()
vim.cmd(failed == 0 and "qall!" or "cquit 1")

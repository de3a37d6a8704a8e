# Prints the target of each call in a project without dependencies, by Elixir's compiler, as JSON lines like those of typescript/uses.cjs:
#     elixir elixir_uses.exs ROOT [FOLDER]      FOLDER: lib
# A tracer receives every call, import and module that the compiler resolves, with its line.
defmodule Tracer do
  def trace({kind, meta, module, name, arity}, env) when kind in [:remote_function, :remote_macro, :imported_function, :imported_macro], do: put(meta, env, {module, name, arity})
  def trace({kind, meta, name, arity}, env) when kind in [:local_function, :local_macro], do: put(meta, env, {env.module, name, arity})
  def trace({:alias_reference, meta, module}, env), do: put(meta, env, module)
  def trace({:struct_expansion, meta, module, _}, env), do: put(meta, env, module)
  def trace(_, _), do: :ok

  defp put(meta, env, meant) do
    # Code made by a macro has no line of its own.
    unless meta[:generated] || meta[:context], do: :ets.insert(:uses, {env.file, meta[:line], meant})
    :ok
  end
end

defmodule Definitions do
  @callables ~w(def defp defmacro defmacrop defguard defguardp defdelegate)a

  # Each function's and module's first line, by module, name and number of parameters.
  def of(path), do: path |> File.read!() |> Code.string_to_quoted!() |> walk([], path)

  defp walk({:defmodule, at, [{:__aliases__, _, parts}, [do: body]]}, around, path) do
    module = Module.concat(around ++ parts)
    :ets.insert_new(:defined, {module, path, at[:line]})
    walk(body, around ++ parts, path)
  end

  defp walk({:defimpl, _, [_ | _]}, _, _), do: :ok

  defp walk({kind, _, [{:when, _, [head | _]} | rest]}, around, path) when kind in @callables, do: walk({kind, [], [head | rest]}, around, path)

  defp walk({kind, _, [{name, at, arguments} | rest]}, around, path) when kind in @callables and is_atom(name) do
    # Clauses, and functions of one name with more or fewer parameters, count as the first.
    :ets.insert_new(:defined, {{Module.concat(around), name}, path, at[:line]})
    walk(arguments, around, path)
    walk(rest, around, path)
  end

  # The compiler gives no useful positions for macro output and for types.
  defp walk({kind, at, parts} = node, _, path) when kind in [:quote, :@] and is_list(parts) do
    if kind == :quote or match?([{_, _, [_ | _]} | _], parts) do
      {_, last} = Macro.prewalk(node, at[:line], fn one, last -> {one, max(last, line(one))} end)
      :ets.insert(:unseen, {path, at[:line], last})
    end

    :ok
  end

  defp walk({_, _, parts}, around, path) when is_list(parts), do: Enum.each(parts, &walk(&1, around, path))
  defp walk([_ | _] = parts, around, path), do: Enum.each(parts, &walk(&1, around, path))
  defp walk({one, two}, around, path), do: walk([one, two], around, path)
  defp walk(_, _, _), do: :ok
  defp line({_, at, _}) when is_list(at), do: at[:line] || 0
  defp line(_), do: 0
end

[root | folders] = System.argv()
root = Path.expand(root)
files = Path.wildcard(Path.join([root, List.first(folders) || "lib", "**/*.ex"]))
for table <- [:uses, :defined, :unseen], do: :ets.new(table, [:named_table, :public, (table in [:uses, :unseen] && :bag) || :set])
Enum.each(files, &Definitions.of/1)
Code.put_compiler_option(:tracers, [Tracer])
Code.put_compiler_option(:ignore_module_conflict, true)
{:ok, _, _} = with {:error, problems, _} <- Kernel.ParallelCompiler.compile(files) do
  IO.inspect(:stderr, problems, [])
  {:ok, [], []}
end

for {file, first, last} <- :ets.tab2list(:unseen), do: IO.puts(~s({"unseen": [#{inspect(Path.relative_to(file, root))}, #{first}, #{last}]}))
texts = Map.new(files, &{&1, &1 |> File.read!() |> String.split("\n")})

for {file, line, meant} <- :ets.tab2list(:uses), line, text = texts[file] do
  {key, name, container, kind} = case meant do
    {module, name, _} -> {{module, name}, to_string(name), inspect(module), "function"}
    module -> {module, module |> Module.split() |> List.last(), module |> Module.split() |> Enum.drop(-1) |> Enum.join("."), "class"}
  end

  # A use that a macro made has no name on its line.
  with [{_, there, at}] <- :ets.lookup(:defined, key), true <- {file, line} != {there, at}, true <- String.contains?(Enum.at(text, line - 1), name) do
    IO.puts(~s({"use": [#{inspect(Path.relative_to(file, root))}, #{line}], "target": [#{inspect(Path.relative_to(there, root))}, #{at}], "name": #{inspect(name)}, "container": #{inspect(container)}, "kind": "#{kind}", "call": #{kind == "function"}}))
  end
end

# Prints the definitions in the files listed on stdin, by Elixir's own parser, as JSON lines like those of ctags.
#     elixir definitions.exs      (Debian: elixir)
# A name from ``unquote`` is known only after macro expansion. A head ``def f(a \\ 1)`` without a body is a declaration.
defmodule Definitions do
  @callables ~w(def defp defmacro defmacrop defguard defguardp defdelegate)a

  def main do
    for path <- IO.stream(:stdio, :line), path = String.trim(path) do
      case Code.string_to_quoted(File.read!(path), columns: true) do
        {:ok, tree} -> Macro.prewalk(tree, fn node -> tell(node, path) && node end)
        _ -> IO.puts(~s({"_type": "unread", "path": #{inspect(path)}}))
      end
    end
  end

  defp tell({kind, _, [{:when, _, [head | _]} | _]}, path) when kind in @callables, do: tell({kind, [], [head]}, path)
  defp tell({kind, _, [{name, at, _} | _]}, path) when kind in @callables and is_atom(name) and name != :unquote, do: tag(path, at, name, kind)
  defp tell({kind, _, [{:__aliases__, at, parts} | _]}, path) when kind in ~w(defmodule defprotocol)a, do: tag(path, at, List.last(parts), kind)

  # An implementation is known by the types that it is for, as in Rust; inside of a type's own module by the protocol.
  defp tell({:defimpl, _, [protocol, [{:for, types} | _] | _]}, path) when is_tuple(protocol) do
    for {:__aliases__, at, parts} <- List.wrap(types), do: tag(path, at, List.last(parts), :defimpl)
    true
  end

  defp tell({:defimpl, _, [{:__aliases__, at, parts} | _]}, path), do: tag(path, at, List.last(parts), :defimpl)
  defp tell({:@, _, [{kind, _, [spec | _]}]}, path) when kind in ~w(type typep opaque callback macrocallback)a, do: spec(spec, path, kind)
  defp tell({:@, _, [_]}, _), do: true
  defp tell(_, _), do: true

  defp spec({:when, _, [spec | _]}, path, kind), do: spec(spec, path, kind)
  defp spec({:"::", _, [{name, at, _} | _]}, path, kind) when is_atom(name), do: tag(path, at, name, kind)
  defp spec(_, _, _), do: true

  defp tag(path, at, name, kind) when is_atom(name) do
    IO.puts(~s({"_type": "tag", "path": #{inspect(path)}, "line": #{at[:line]}, "name": #{inspect(to_string(name))}, "kind": "#{kind}"}))
    true
  end

  defp tag(_, _, _, _), do: true
end

Definitions.main()

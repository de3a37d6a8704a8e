defmodule Shop.Store do
  @moduledoc "Keeps things."
  use GenServer
  import Enum, only: [map: 2]
  alias Shop.{Item, Cart}
  alias Shop.Base, as: B
  require Logger
  @behaviour Shop.Named
  @limit 10
  @type key :: String.t()
  @callback read(key) :: term
  defstruct [:name, size: 0]

  @doc "Reads one."
  @spec read(key) :: term
  def read(key) when is_binary(key) do
    Logger.info("k #{helper(key)}")
    map([1], &helper/1)
  end

  def read(key, opts), do: B.fetch(key, opts)
  defp helper(x), do: x
  defmacro square(x), do: quote(do: unquote(x))
  defguard is_even(x) when rem(x, 2) == 0
  defdelegate size(x), to: Item
end

defprotocol Named do
  def name(x)
end

defimpl Named, for: Shop.Store do
  def name(s), do: s.name
end

defmodule Shop.Error do
  defexception message: "x"
end

defmodule Store.Money do
  @callback add(a, b) :: a when a: term, b: term
  defimpl String.Chars do
    def to_string(money), do: money.text
  end

  def left + right, do: {left, right}
  defmacro left ~> right when is_atom(left), do: {left, right}
  def -value, do: value
end

defimpl Inspect, for: [Store.Money, Store.Key] do
  def inspect(value, _), do: value
end

%% Sample module: a small shop.
-module(shop).
-behaviour(gen_server).
-export([start_link/0, add/2, 'odd name'/1]).
-import(lists, [map/2, foldl/3]).
-include("shop.hrl").
-include_lib("kernel/include/logger.hrl").

-define(TIMEOUT, 5000).
-define(LOG(Text), io:format("~s~n", [Text])).

-record(item, {name :: binary(), price = 0 :: integer()}).

-type money() :: integer().
-opaque basket() :: #{binary() => money()}.
-callback price(Name :: binary()) -> money().

%% Starts the shop.
-spec start_link() -> {ok, pid()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

% Adds an item,
% or nothing.
add(Name, 0) ->
    ok;
add(Name, Price) when Price > 0 ->
    Item = #item{name = Name, price = Price},
    ?LOG("added"),
    Fun = fun(X) -> helper(X) end,
    store(Item, Fun).

'odd name'(X) -> X.

store(#item{name = Name} = Item, Fun) ->
    Total = map(Fun, [Item]),
    shop_db:put(Name, Total).

helper(X) -> X.

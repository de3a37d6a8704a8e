# The shop.
module Shop
using LinearAlgebra
import Base: show, length
export price, Item
include("helpers.jl")

const LIMIT = 10
total = 0

abstract type Priced end
primitive type Small 8 end

"A thing."
struct Item{T} <: Priced
    name::String
    amount::T
    Item(name) = new{Int}(name, 1)
end
mutable struct Basket
    items::Vector{Item}
end

@enum Kind food book

"""
Prices.
"""
function price(item::Item; times = 2)::Int where {T}
    local_one = helper(item)
    inner(x) = x * times
    map(x -> x + 1, [local_one])
end
helper(x) = x * LIMIT
Base.show(io::IO, item::Item) = print(io, item.name)
function Base.length(b::Basket) length(b.items) end
macro twice(ex) :($ex; $ex) end
f(x)::Int = @twice helper(x)
end

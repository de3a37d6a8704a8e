# Symbols by words: no grammar of Nim is installed.
import strutils, tables

type Shop = object
  name: string
  prices: Table[string, int]

const limit = 10
var total = 0

## What a thing costs, in cents.
proc price(shop: Shop, name: string): int =
  let found = shop.prices.getOrDefault(name)
  if found > limit:
    result = helper(name)
  else:
    result = found

proc add(shop: var Shop, name: string, amount: int) =
  shop.prices[name] = amount
  total = total + amount

func helper(x: string): int = x.len

template twice(body: untyped) =
  body
  body

iterator names(shop: Shop): string =
  for name in shop.prices.keys:
    yield name

type
  Kind* = enum
    fruit, bread
  Item*[T] = ref object of RootObj
    name*, label: string
    price*: int

const
  first* = 1
  second: int = 2

method `+`*(a, b: Item): Item {.base.} = a

macro again(body: untyped): untyped = body

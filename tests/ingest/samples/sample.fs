// Symbols by patterns: no grammar of F# is installed.
namespace Shop.Store

open System

type Kind =
    | Fruit
    | Bread of int

type Item = { Name: string; Price: int }

exception SoldOut of string

[<AutoOpen>]
module Prices =
    let limit = 10

    /// What a thing costs, in cents.
    let rec price (shop: Item list) name =
        let found = List.tryFind (fun item -> item.Name = name) shop
        helper found

    let inline private (+.) a b = a + b

    let (|Even|Odd|) n = if n % 2 = 0 then Even else Odd

type IPriced =
    abstract member Price: string -> int

type Store(name: string) =
    let mutable total = 0
    member this.Add(amount: int) = total <- total + amount
    member _.``a long name`` = name
    static member Create() = Store("a")
    interface IPriced with
        override this.Price(name) = limit

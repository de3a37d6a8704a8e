open Printf
module M = Map.Make(String)

(** Keeps things. *)
type 'a store = { name : string; mutable items : 'a list }
type color = Red | Green of int
exception Not_here of string

module type NAMED = sig
  val name : string
  type t
end

module Store : NAMED = struct
  let name = "x"
  type t = int
  let rec read key m = M.find key (helper m)
end

let limit = 10
let helper m = let local = m in local
let (<+>) a b = a + b
external fast : int -> int = "fast_c"

class point x = object (self)
  inherit base x
  val mutable pos = x
  method move d = pos <- pos + d; self#draw
end
let () = printf "%d" limit

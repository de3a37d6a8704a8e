(** Reads one. *)
val read : string -> int
type t
exception Gone
module Sub : sig val inner : int end

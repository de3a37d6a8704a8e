(* Prints the definitions in the files listed on stdin, by OCaml's own parser, as JSON lines like those of ctags.
       ocaml -I +compiler-libs definitions.ml      (Debian: ocaml-nox)
   A value bound inside of an expression is told only where it is a function. *)
#load "ocamlcommon.cma"
open Parsetree

let path = ref ""
let rows = Buffer.create 65536

let tell kind { Asttypes.txt; loc } =
  Buffer.add_string rows
    (Printf.sprintf {|{"_type": "tag", "path": %S, "line": %d, "name": %S, "kind": "%s"}|} !path
       loc.Location.loc_start.pos_lnum txt kind);
  Buffer.add_char rows '\n'

let rec names pattern =
  match pattern.ppat_desc with
  | Ppat_var name -> [ name ]
  | Ppat_constraint (inner, _) -> names inner
  | Ppat_alias (inner, name) -> name :: names inner
  | Ppat_tuple parts -> List.concat_map names parts
  | _ -> []

let rec is_function value =
  match value.pexp_desc with
  | Pexp_fun _ | Pexp_function _ -> true
  | Pexp_newtype (_, inner) | Pexp_constraint (inner, _) | Pexp_poly (inner, _) -> is_function inner
  | _ -> false

let optional kind { Asttypes.txt; loc } = Option.iter (fun txt -> tell kind { Asttypes.txt; loc }) txt

let iterator =
  let default = Ast_iterator.default_iterator in
  {
    default with
    structure_item =
      (fun self item ->
        (match item.pstr_desc with
        | Pstr_value (_, bindings) -> List.iter (fun one -> List.iter (tell "value") (names one.pvb_pat)) bindings
        | _ -> ());
        default.structure_item self item);
    expr =
      (fun self value ->
        (match value.pexp_desc with
        | Pexp_let (_, bindings, _) ->
            List.iter (fun one -> if is_function one.pvb_expr then List.iter (tell "function") (names one.pvb_pat)) bindings
        | _ -> ());
        default.expr self value);
    with_constraint = (fun _ _ -> ()); (* ``S with type t = int`` defines nothing *)
    value_description = (fun self one -> tell "value" one.pval_name; default.value_description self one);
    type_declaration = (fun self one -> tell "type" one.ptype_name; default.type_declaration self one);
    constructor_declaration = (fun self one -> tell "constructor" one.pcd_name; default.constructor_declaration self one);
    extension_constructor = (fun self one -> tell "constructor" one.pext_name; default.extension_constructor self one);
    label_declaration = (fun self one -> tell "field" one.pld_name; default.label_declaration self one);
    module_binding = (fun self one -> optional "module" one.pmb_name; default.module_binding self one);
    module_declaration = (fun self one -> optional "module" one.pmd_name; default.module_declaration self one);
    module_type_declaration = (fun self one -> tell "interface" one.pmtd_name; default.module_type_declaration self one);
    class_declaration = (fun self one -> tell "class" one.pci_name; default.class_declaration self one);
    class_type_declaration = (fun self one -> tell "class" one.pci_name; default.class_type_declaration self one);
    class_field =
      (fun self one ->
        (match one.pcf_desc with
        | Pcf_val (name, _, _) | Pcf_method (name, _, _) -> tell "method" name
        | _ -> ());
        default.class_field self one);
    class_type_field =
      (fun self one ->
        (match one.pctf_desc with
        | Pctf_method (name, _, _, _) -> tell "method" name
        | _ -> ());
        default.class_type_field self one);
  }

let () =
  try
    while true do
      path := input_line stdin;
      Buffer.clear rows;
      (try
         let channel = open_in_bin !path in
         let text = Fun.protect ~finally:(fun () -> close_in channel) (fun () -> really_input_string channel (in_channel_length channel)) in
         let lexbuf = Lexing.from_string text in
         if Filename.check_suffix !path ".mli" then iterator.signature iterator (Parse.interface lexbuf)
         else iterator.structure iterator (Parse.implementation lexbuf)
       with _ ->
         Buffer.clear rows;
         Buffer.add_string rows (Printf.sprintf "{\"_type\": \"unread\", \"path\": %S}\n" !path));
      print_string (Buffer.contents rows)
    done
  with End_of_file -> ()

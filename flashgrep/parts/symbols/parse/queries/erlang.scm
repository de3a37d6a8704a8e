; Erlang: definitions. Each clause of a function that stands alone is a form of its own, and so a definition.
(module_attribute name: (atom) @name) @module
(record_decl name: (atom) @name) @struct
(record_decl fields: (record_field name: (atom) @name) @field)
(type_alias name: (type_name name: (atom) @name)) @type
(opaque name: (type_name name: (atom) @name)) @type
(pp_define lhs: (macro_lhs name: (_) @name)) @macro
(callback fun: (atom) @name) @declaration.function
(spec fun: (atom) @name) @declaration.function
(fun_decl clause: (function_clause name: (atom) @name)) @function

; references
(comment) @skip
(string) @skip
(call expr: (atom) @call)
(macro_call_expr name: (var) @call)
(record_expr name: (record_name name: (atom) @call))
(internal_fun fun: (atom) @call)
(external_fun fun: (atom) @call)
(behaviour_attribute name: (atom) @base)
(import_attribute module: (atom) @import)
(import_attribute funs: (fa fun: (atom) @import))
(import_attribute) @statement
(pp_include) @statement
(pp_include_lib) @statement

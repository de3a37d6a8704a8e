; Fortran: definitions.
(module (module_statement (name) @name)) @module
(submodule (submodule_statement (name) @name)) @module
(program (program_statement (name) @name)) @module
(derived_type_definition (derived_type_statement (type_name) @name)) @struct
(derived_type_definition (variable_declaration declarator: [
  (identifier) @name
  (init_declarator left: (identifier) @name)
  (pointer_init_declarator left: (identifier) @name)
  (sized_declarator . (identifier) @name)]) @field)
(derived_type_procedures (procedure_statement declarator: (method_name) @name) @declaration.method)
(derived_type_procedures (generic_statement declarator: (binding_list . (binding_name (identifier) @name))) @declaration.method)
(enumerator_statement declarator: [(identifier) @name (init_declarator left: (identifier) @name)]) @enumerator
(derived_type_procedures (procedure_statement declarator: (binding (binding_name (identifier) @name))) @declaration.method)
(interface (interface_statement (name) @name)) @interface
(interface (interface_statement (operator (operator_name) @name))) @interface
(interface (function (function_statement name: (name) @name)) @declaration.function)
(interface (subroutine (subroutine_statement name: (name) @name)) @declaration.function)
(function (function_statement name: (name) @name)) @function
(subroutine (subroutine_statement name: (name) @name)) @function
(module_procedure (module_procedure_statement name: (name) @name)) @function
(module (variable_declaration attribute: (type_qualifier) @_parameter
  declarator: (init_declarator left: (identifier) @name) (#match? @_parameter "^[pP]")) @constant)
(module (variable_declaration declarator: [
  (identifier) @name
  (init_declarator left: (identifier) @name)
  (sized_declarator . (identifier) @name)]) @variable)
(preproc_def name: (identifier) @name) @macro
(preproc_function_def name: (identifier) @name) @macro

; references
(comment) @skip
(string_literal) @skip
(subroutine_call subroutine: (identifier) @call)
(subroutine_call subroutine: (derived_type_member_expression (type_member) @call))
(call_expression . (identifier) @call)
(call_expression . (derived_type_member_expression (type_member) @call))
(base_type_specifier (identifier) @base)
(use_statement (module_name) @import)
(included_items (identifier) @import)
(use_statement) @statement
(include_statement) @statement

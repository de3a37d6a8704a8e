; OCaml: definitions.
; inherits: ocaml_interface
(let_expression (value_definition (let_binding pattern: (value_name)) @anonymous))
(value_definition (let_binding pattern: (value_name) @name (parameter)) @function)
(value_definition (let_binding pattern: (value_name) @name body: (fun_expression)) @function)
(value_definition (let_binding pattern: (value_name) @name body: (function_expression)) @function)
(value_definition (let_binding pattern: (parenthesized_operator (_) @name)) @function)
(value_definition (let_binding pattern: (value_name) @name) @variable)

; references
(application_expression function: (value_path (value_name) @call))
(method_invocation method: (method_name) @call)
(inheritance_definition (class_application class: (class_path (class_name) @base)))
(inheritance_definition (class_path (class_name) @base))

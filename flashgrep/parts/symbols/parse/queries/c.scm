; C: definitions.
(field_declaration declarator: [
  (field_identifier) @name
  (array_declarator declarator: (field_identifier) @name)
  (array_declarator declarator: (array_declarator declarator: (field_identifier) @name))
  (array_declarator declarator: (pointer_declarator declarator: (field_identifier) @name))
  (pointer_declarator declarator: (field_identifier) @name)
  (pointer_declarator declarator: (array_declarator declarator: (field_identifier) @name))
  (pointer_declarator declarator: (pointer_declarator declarator: (field_identifier) @name))
  (function_declarator declarator: (parenthesized_declarator
    (pointer_declarator declarator: (field_identifier) @name)))
  (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator
    (pointer_declarator declarator: (field_identifier) @name))))]) @field
(enumerator name: (identifier) @name) @enumerator
(preproc_def name: (identifier) @name) @macro
(preproc_function_def name: (identifier) @name) @macro
(struct_specifier name: (type_identifier) @name body: (_)) @struct
(union_specifier name: (type_identifier) @name body: (_)) @union
(enum_specifier name: (type_identifier) @name body: (_)) @enum
; A function made by a macro (``SYSCALL_DEFINE2(…) {``) is a block on its own to the grammar: its variables are local.
(translation_unit (compound_statement) @anonymous)
(preproc_ifdef (compound_statement) @anonymous)
(preproc_if (compound_statement) @anonymous)
(preproc_else (compound_statement) @anonymous)
(declaration_list (compound_statement) @anonymous)
(struct_specifier !name body: (_)) @inline
(union_specifier !name body: (_)) @inline
(type_definition declarator: [
  (type_identifier) @name
  (primitive_type) @name
  (pointer_declarator declarator: (type_identifier) @name)
  (pointer_declarator declarator: (pointer_declarator declarator: (type_identifier) @name))
  (array_declarator declarator: (type_identifier) @name)
  (function_declarator declarator: (type_identifier) @name)
  (function_declarator declarator: (parenthesized_declarator (type_identifier) @name))
  ; ``typedef unsigned long(name)(…)``: the grammar takes the second word for the name, and this for its parameter
  (function_declarator declarator: (function_declarator declarator: (primitive_type)
    parameters: (parameter_list . (parameter_declaration type: (type_identifier) @name) .)))
  (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (type_identifier) @name)))
  (pointer_declarator declarator: (function_declarator declarator: (type_identifier) @name))
  (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator
    (pointer_declarator declarator: (type_identifier) @name))))]) @type
(function_definition declarator: [
  (function_declarator declarator: (identifier) @name)
  (function_declarator declarator: (parenthesized_declarator (identifier) @name))
  (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
  (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)))
]) @function
(declaration declarator: [
  (function_declarator declarator: (identifier) @name)
  (function_declarator declarator: (parenthesized_declarator (identifier) @name))
  (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
  (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator (identifier) @name)))
  (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)))
]) @declaration.function
; the type as a field halves the time it takes to compile this query for Objective-C, which inherits it
(declaration (storage_class_specifier "extern") type: (_) declarator: [
  (identifier) @name
  (array_declarator declarator: (identifier) @name)
  (array_declarator declarator: (array_declarator declarator: (identifier) @name))
  (pointer_declarator declarator: (identifier) @name)
  (pointer_declarator declarator: (array_declarator declarator: (identifier) @name))
  (pointer_declarator declarator: (pointer_declarator declarator: (identifier) @name))]) @declaration.variable
(declaration declarator: [
  (identifier) @name
  (array_declarator declarator: (identifier) @name)
  (array_declarator declarator: (array_declarator declarator: (identifier) @name))
  (pointer_declarator declarator: (identifier) @name)
  (pointer_declarator declarator: (array_declarator declarator: (identifier) @name))
  (pointer_declarator declarator: (pointer_declarator declarator: (identifier) @name))
  (function_declarator declarator: (parenthesized_declarator (pointer_declarator declarator: (identifier) @name)))
  (pointer_declarator declarator: (function_declarator declarator: (parenthesized_declarator
    (pointer_declarator declarator: (identifier) @name))))
  (init_declarator declarator: (identifier) @name)
  (init_declarator declarator: (array_declarator declarator: (identifier) @name))
  (init_declarator declarator: (array_declarator declarator: (array_declarator declarator: (identifier) @name)))
  (init_declarator declarator: (pointer_declarator declarator: (identifier) @name))
  (init_declarator declarator: (pointer_declarator declarator: (array_declarator declarator: (identifier) @name)))
  (init_declarator declarator: (pointer_declarator declarator: (pointer_declarator declarator: (identifier) @name)))
  (init_declarator declarator: (function_declarator declarator: (parenthesized_declarator
    (pointer_declarator declarator: (identifier) @name))))]) @variable

; references
(comment) @skip
(string_content) @skip
(system_lib_string) @skip
(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (field_identifier) @call))
(call_expression function: (parenthesized_expression (identifier) @call))
(preproc_include) @statement

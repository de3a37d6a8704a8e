; C++: definitions, the C ones among them.
(class_specifier name: [
  (type_identifier) @name
  (template_type name: (type_identifier) @name)
  (qualified_identifier name: (type_identifier) @name)] body: (_)) @class
(struct_specifier name: (template_type name: (type_identifier) @name) body: (_)) @struct
(struct_specifier name: (qualified_identifier name: (type_identifier) @name) body: (_)) @struct
(namespace_definition name: (namespace_identifier) @name) @namespace
(namespace_definition name: (nested_namespace_specifier) @name) @namespace
(namespace_alias_definition name: (namespace_identifier) @name) @namespace
(alias_declaration name: (type_identifier) @name) @type
(concept_definition name: (identifier) @name) @type
(function_definition declarator: [
  (function_declarator declarator: [
    (field_identifier) @name (destructor_name) @name (operator_name) @name (operator_cast) @name
    (template_function name: (identifier) @name)])
  (pointer_declarator declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name))
  (reference_declarator (function_declarator declarator: [(identifier) (field_identifier) (operator_name)] @name))
  (operator_cast) @name
]) @function
(function_definition declarator: [
  (function_declarator declarator: (qualified_identifier scope: (_) @container name: (_) @name))
  (pointer_declarator declarator: (function_declarator
    declarator: (qualified_identifier scope: (_) @container name: (_) @name)))
  (reference_declarator (function_declarator
    declarator: (qualified_identifier scope: (_) @container name: (_) @name)))]) @function
(field_declaration declarator: [
  (function_declarator declarator: [(field_identifier) (identifier) (operator_name) (destructor_name)] @name)
  (pointer_declarator declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name))
  (reference_declarator (function_declarator declarator: [(field_identifier) (operator_name)] @name))
  (operator_cast) @name
  (reference_declarator (field_identifier) @name)]) @declaration.function
(declaration declarator: [
  (function_declarator declarator: [(destructor_name) (operator_name)] @name)
  (reference_declarator (function_declarator declarator: [(identifier) (operator_name)] @name))
  (operator_cast) @name]) @declaration.function
(declaration declarator: (init_declarator
  declarator: (qualified_identifier scope: (_) @container name: (identifier) @name))) @variable
(declaration declarator: (init_declarator declarator: (reference_declarator (identifier) @name))) @variable
(lambda_expression) @anonymous
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
  (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))
  (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)))
]) @declaration.function
(declaration (storage_class_specifier "extern") declarator: [
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
(raw_string_content) @skip
(call_expression function: (qualified_identifier name: (identifier) @call))
(call_expression function: (qualified_identifier name: (qualified_identifier name: (identifier) @call)))
(call_expression function: (template_function name: (identifier) @call))
(call_expression function: (qualified_identifier name: (template_function name: (identifier) @call)))
(call_expression function: (field_expression field: (template_method name: (field_identifier) @call)))
(new_expression type: (type_identifier) @call)
(new_expression type: (template_type name: (type_identifier) @call))
(base_class_clause (type_identifier) @base)
(base_class_clause (template_type name: (type_identifier) @base))
(base_class_clause (qualified_identifier name: (type_identifier) @base))
(base_class_clause (qualified_identifier name: (template_type name: (type_identifier) @base)))
(using_declaration) @statement

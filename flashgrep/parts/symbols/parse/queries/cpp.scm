; C++: definitions, the C ones among them.
; inherits: c
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

; references
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

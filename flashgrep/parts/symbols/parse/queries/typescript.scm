; TypeScript: definitions.
; inherits: ecma
(class_declaration name: (type_identifier) @name) @class
(abstract_class_declaration name: (type_identifier) @name) @class
(interface_declaration name: (type_identifier) @name) @interface
(type_alias_declaration name: (type_identifier) @name) @type
(enum_declaration name: (identifier) @name) @enum
(enum_body name: (property_identifier) @name @enumerator)
(enum_assignment name: (property_identifier) @name) @enumerator
(internal_module name: [(identifier) (nested_identifier)] @name) @namespace
(module name: [(identifier) (nested_identifier)] @name) @namespace
(module name: (string (string_fragment) @name)) @namespace
(function_signature name: (identifier) @name) @declaration.function
(abstract_method_signature name: (property_identifier) @name) @method
(method_signature name: (property_identifier) @name) @method
(property_signature name: (property_identifier) @name) @field
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name
  value: [(arrow_function) (function_expression)]) @method
(public_field_definition name: [(property_identifier) (private_property_identifier)] @name) @field
(required_parameter (accessibility_modifier) pattern: (identifier) @name) @property
(optional_parameter (accessibility_modifier) pattern: (identifier) @name) @property

; references
(extends_clause value: (identifier) @base)
(extends_clause value: (member_expression property: (property_identifier) @base))
(extends_type_clause (type_identifier) @base)
(extends_type_clause (generic_type name: (type_identifier) @base))
(implements_clause (type_identifier) @base)
(implements_clause (generic_type name: (type_identifier) @base))
(import_require_clause (identifier) @import)
; ``await f<T>()`` and ``!f<T>()``: the grammar takes ``await f`` for what is called
(call_expression function: (await_expression (identifier) @call))
(call_expression function: (await_expression
  (member_expression property: [(property_identifier) (private_property_identifier)] @call)))
(call_expression function: (unary_expression argument: (identifier) @call))
(call_expression function: (unary_expression
  argument: (member_expression property: [(property_identifier) (private_property_identifier)] @call)))
(call_expression function: (non_null_expression (identifier) @call))
(call_expression function: (non_null_expression
  (member_expression property: [(property_identifier) (private_property_identifier)] @call)))

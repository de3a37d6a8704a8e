; Go: definitions. A method's container is its receiver's type.
(package_clause (package_identifier) @name) @package
(function_declaration name: (identifier) @name) @function
(method_declaration
  receiver: (parameter_list (parameter_declaration type: [
    (type_identifier) @container
    (pointer_type (type_identifier) @container)
    (generic_type type: (type_identifier) @container)
    (pointer_type (generic_type type: (type_identifier) @container))]))
  name: (field_identifier) @name) @method
(type_spec name: (type_identifier) @name type: (struct_type)) @struct
(type_spec name: (type_identifier) @name type: (interface_type)) @interface
(type_spec name: (type_identifier) @name) @type
(type_alias name: (type_identifier) @name) @type
(method_elem name: (field_identifier) @name) @method
(field_declaration name: (field_identifier) @name) @field
(const_spec (identifier) @name) @constant
(var_spec name: (identifier) @name) @variable
(func_literal) @anonymous

; references
(comment) @skip
(interpreted_string_literal_content) @skip
(raw_string_literal_content) @skip
(call_expression function: (identifier) @call)
(call_expression function: (selector_expression field: (field_identifier) @call))
(call_expression function: (parenthesized_expression (identifier) @call))
(call_expression function: (index_expression operand: (identifier) @call))
(call_expression function: (index_expression operand: (selector_expression field: (field_identifier) @call)))
(call_expression function: (type_instantiation_expression type: (type_identifier) @call))
(call_expression function: (type_instantiation_expression type: (qualified_type name: (type_identifier) @call)))
(type_conversion_expression type: (generic_type type: (type_identifier) @call))
(type_conversion_expression type: (generic_type type: (qualified_type name: (type_identifier) @call)))
(composite_literal type: (type_identifier) @call)
(composite_literal type: (qualified_type name: (type_identifier) @call))
(field_declaration !name type: (type_identifier) @base)
(field_declaration !name type: (pointer_type (type_identifier) @base))
(field_declaration !name type: (qualified_type name: (type_identifier) @base))
(field_declaration !name type: (generic_type type: (type_identifier) @base))
(field_declaration !name type: (generic_type type: (qualified_type name: (type_identifier) @base)))
(interface_type (type_elem (type_identifier) @base))
(interface_type (type_elem (qualified_type name: (type_identifier) @base)))
(interface_type (type_elem (generic_type type: (type_identifier) @base)))
(interface_type (type_elem (generic_type type: (qualified_type name: (type_identifier) @base))))
(import_spec name: (package_identifier) @import)
(import_spec) @statement

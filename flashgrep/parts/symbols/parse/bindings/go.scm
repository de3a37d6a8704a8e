; Go: scopes and bindings.
(function_declaration name: (_) @after) @function
(method_declaration) @function
(func_literal) @function
[(block) (if_statement) (for_statement) (expression_switch_statement) (type_switch_statement)] @function
[(expression_case) (type_case) (default_case) (communication_case)] @function
(type_spec name: (_) @after type: [(struct_type) (interface_type)]) @class
; Parameters of types are seen in them, as members are not.
(type_spec name: (_) @outside type_parameters: (_)) @function
; A structure without a name.
(slice_type element: (struct_type) @class)
(array_type element: (struct_type) @class)
(implicit_length_array_type element: (struct_type) @class)
(map_type value: (struct_type) @class)
(channel_type value: (struct_type) @class)
(composite_literal type: (struct_type) @class)
(var_spec type: (struct_type) @class)
(field_declaration type: (struct_type) @class)
(parameter_declaration type: (struct_type) @class)
(pointer_type (struct_type) @class)

(function_declaration name: (identifier) @definition)
(method_elem name: (field_identifier) @definition)
(type_spec name: (type_identifier) @definition)
(type_alias name: (type_identifier) @definition)
(short_var_declaration left: (expression_list (identifier) @name) right: (expression_list) @value)
(var_spec name: (identifier) @name type: (_) @type)
(var_spec name: (identifier) @name !type value: (expression_list) @value)
(const_spec (identifier) @name)
(range_clause left: (expression_list (identifier) @name) right: (_) @element)
(parameter_declaration name: (identifier) @parameter type: (_) @type)
(variadic_parameter_declaration name: (identifier) @parameter type: (_) @many)
(field_declaration name: (field_identifier) @name type: (_) @type)
(type_switch_statement alias: (expression_list (identifier) @name))
(type_switch_statement
  alias: (expression_list (identifier) @name)
  (type_case "case" . type: (_) @type . ":") @place)
(type_parameter_declaration name: (identifier) @name @generic type: (type_constraint (_) @type))
(method_declaration receiver: (parameter_list (parameter_declaration type:
  (generic_type type_arguments: (type_arguments (type_elem (type_identifier) @parameter))))))
(method_declaration receiver: (parameter_list (parameter_declaration type:
  (pointer_type (generic_type type_arguments: (type_arguments (type_elem (type_identifier) @parameter)))))))
(return_statement (expression_list . (_) @returned))

; Solidity: definitions.
(contract_declaration name: (identifier) @name) @class
(interface_declaration name: (identifier) @name) @interface
(library_declaration name: (identifier) @name) @module
(struct_declaration name: (identifier) @name) @struct
(struct_member name: (identifier) @name) @field
(enum_declaration name: (identifier) @name) @enum
(enum_value) @name @enumerator
(event_definition name: (identifier) @name) @event
(error_declaration name: (identifier) @name) @type
(user_defined_type_definition name: (identifier) @name) @type
(modifier_definition name: (identifier) @name) @function
(function_definition name: (identifier) @name) @function
(constructor_definition "constructor" @name) @constructor
(fallback_receive_definition ["fallback" "receive"] @name) @method
(state_variable_declaration name: (identifier) @name) @variable
(constant_variable_declaration name: (identifier) @name) @constant

; references
(comment) @skip
(string) @skip
(call_expression function: (expression (identifier) @call))
(call_expression function: (expression (member_expression property: (identifier) @call)))
(new_expression name: (type_name (user_defined_type (identifier) @call)))
(emit_statement name: (expression (identifier) @call))
(modifier_invocation (identifier) @call)
(inheritance_specifier ancestor: (user_defined_type (identifier) @base .))
(import_directive import_name: (identifier) @import)
(import_directive alias: (identifier) @import)
(import_directive) @statement

; Rust: definitions. An impl block is a scope named by its type.
(struct_item name: (type_identifier) @name) @struct
(union_item name: (type_identifier) @name) @union
(enum_item name: (type_identifier) @name) @enum
(enum_variant name: (identifier) @name) @enumerator
(field_declaration name: (field_identifier) @name) @field
(trait_item name: (type_identifier) @name) @trait
(impl_item type: [
  (type_identifier) @name
  (primitive_type) @name
  (generic_type type: (type_identifier) @name)
  (scoped_type_identifier name: (type_identifier) @name)
  (generic_type type: (scoped_type_identifier name: (type_identifier) @name))
  (reference_type type: (type_identifier) @name)
  (reference_type type: (primitive_type) @name)
  (array_type element: [(type_identifier) (primitive_type)] @name)
  (reference_type type: (array_type element: [(type_identifier) (primitive_type)] @name))
  (dynamic_type trait: (type_identifier) @name)
  (reference_type type: (generic_type type: (type_identifier) @name))]) @extension
(function_item name: (identifier) @name) @function
(function_signature_item name: (identifier) @name) @function
(const_item name: (identifier) @name) @constant
(static_item name: (identifier) @name) @variable
(type_item name: (type_identifier) @name) @type
(associated_type name: (type_identifier) @name) @type
(mod_item name: (identifier) @name body: (_)) @module
(mod_item name: (identifier) @name !body) @declaration.module
(macro_definition name: (identifier) @name) @macro
(closure_expression) @anonymous

; references
(line_comment) @skip
(block_comment) @skip
(string_content) @skip
(call_expression function: (identifier) @call)
(call_expression function: (scoped_identifier name: (identifier) @call))
(call_expression function: (field_expression field: (field_identifier) @call))
(call_expression function: (generic_function function: (identifier) @call))
(call_expression function: (generic_function function: (scoped_identifier name: (identifier) @call)))
(call_expression function: (generic_function function: (field_expression field: (field_identifier) @call)))
(struct_expression name: (type_identifier) @call)
(macro_invocation macro: (identifier) @call)
(macro_invocation macro: (scoped_identifier name: (identifier) @call))
; Tokens of a macro are no syntax: a name before parentheses is a call, as it is anywhere else.
(token_tree (identifier) @call . (token_tree . "("))
(token_tree (identifier) @call . "!" . (token_tree))
(attribute_item) @attribute
(inner_attribute_item) @attribute
(impl_item trait: (type_identifier) @base)
(impl_item trait: (generic_type type: (type_identifier) @base))
(impl_item trait: (scoped_type_identifier name: (type_identifier) @base))
(impl_item trait: (generic_type type: (scoped_type_identifier name: (type_identifier) @base)))
(trait_item bounds: (trait_bounds (type_identifier) @base))
(trait_item bounds: (trait_bounds (generic_type type: (type_identifier) @base)))
(use_declaration) @statement
(extern_crate_declaration) @statement

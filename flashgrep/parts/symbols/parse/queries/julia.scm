; Julia: definitions.
(module_definition name: (identifier) @name) @module
(abstract_definition (type_head [
  (identifier) @name
  (binary_expression . (identifier) @name)
  (parametrized_type_expression . (identifier) @name)
  (binary_expression . (parametrized_type_expression . (identifier) @name))])) @interface
(primitive_definition (type_head [(identifier) @name (binary_expression . (identifier) @name)])) @type
(struct_definition (type_head [
  (identifier) @name
  (binary_expression . (identifier) @name)
  (parametrized_type_expression . (identifier) @name)
  (binary_expression . (parametrized_type_expression . (identifier) @name))])) @struct
(struct_definition (block (typed_expression . (identifier) @name) @field))
(struct_definition (block (identifier) @name @field))
(macrocall_expression (macro_identifier (identifier) @_enum) (macro_argument_list . (identifier) @name)
  (#eq? @_enum "enum")) @enum
(macrocall_expression (macro_identifier (identifier) @_enum) (macro_argument_list . (_) (identifier) @name @enumerator)
  (#eq? @_enum "enum"))
(function_definition (signature [
  (identifier) @name
  (call_expression . [(identifier) @name (field_expression (identifier) @name .)])
  (typed_expression . (call_expression . [(identifier) @name (field_expression (identifier) @name .)]))
  (where_expression . (call_expression . [(identifier) @name (field_expression (identifier) @name .)]))
  (where_expression . (typed_expression . (call_expression . [
    (identifier) @name
    (field_expression (identifier) @name .)])))])) @function
(macro_definition (signature (call_expression . (identifier) @name))) @macro
(assignment . [
  (call_expression . [(identifier) @name (field_expression (identifier) @name .)])
  (typed_expression . (call_expression . [(identifier) @name (field_expression (identifier) @name .)]))
  (where_expression . (call_expression . [(identifier) @name (field_expression (identifier) @name .)]))
] . (operator)) @function
(const_statement (assignment . (identifier) @name)) @constant
(const_statement (assignment . (typed_expression . (identifier) @name))) @constant
(source_file (assignment . (identifier) @name) @variable)
(module_definition (block (assignment . (identifier) @name) @variable))
(arrow_function_expression) @anonymous
(do_clause) @anonymous

; references
(line_comment) @skip
(block_comment) @skip
(content) @skip
(call_expression . (identifier) @call)
(call_expression . (field_expression (identifier) @call .))
(call_expression . (parametrized_type_expression . (identifier) @call))
(broadcast_call_expression . (identifier) @call)
(macrocall_expression (macro_identifier (identifier) @call))
(type_head (binary_expression (identifier) @base .))
(selected_import (identifier) @import)
(using_statement) @statement
(import_statement) @statement

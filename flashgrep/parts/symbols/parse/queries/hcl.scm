; HCL (Terraform): definitions. A block is named by its last label.
(body (block (identifier) @_kind (string_lit (template_literal) @name) . (block_start)) @struct
  (#any-of? @_kind "resource" "data" "check" "ephemeral"))
(body (block (identifier) @_kind (string_lit (template_literal) @name) . (block_start)) @module
  (#any-of? @_kind "module" "provider"))
(body (block (identifier) @_kind (string_lit (template_literal) @name) . (block_start)) @variable
  (#any-of? @_kind "variable" "output"))
(block (identifier) @_kind (body (attribute . (identifier) @name) @constant) (#eq? @_kind "locals"))
(body (block (identifier) @_kind (string_lit (template_literal) @name) . (block_start)) @object
  (#not-match? @_kind "^(resource|data|check|ephemeral|module|provider|variable|output|dynamic)$"))

; references
(comment) @skip
(template_literal) @skip
(function_call . (identifier) @call)
(body (block (identifier) @_kind (body (attribute . (identifier) @_source)) (#eq? @_kind "module")
  (#eq? @_source "source")) @statement)

; Dockerfiles: definitions are stages, arguments and variables.
(from_instruction as: (image_alias) @name) @module
(arg_instruction name: (_) @name) @variable
(env_pair name: (_) @name) @variable

; references
(comment) @skip
(from_instruction (image_spec name: (image_name) @import)) @statement

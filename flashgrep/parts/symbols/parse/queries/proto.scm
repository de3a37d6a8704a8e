; Protocol Buffers: definitions.
(package (full_ident) @name) @package
(message (message_name (identifier) @name)) @struct
(enum (enum_name (identifier) @name)) @enum
(enum_field . (identifier) @name) @enumerator
(service (service_name (identifier) @name)) @interface
(rpc (rpc_name (identifier) @name)) @method
(field (identifier) @name) @field
(map_field (identifier) @name) @field
(oneof (identifier) @name) @union
(oneof_field (identifier) @name) @field

; references
(comment) @skip
(string) @skip
(rpc (message_or_enum_type (identifier) @call .))
(import) @statement

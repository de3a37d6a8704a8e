; Typst: definitions are headings, functions and values.
(section (heading (text) @name)) @heading
(let pattern: (call item: (ident) @name)) @function
(let pattern: (ident) @name) @variable

; references
(comment) @skip
(raw_blck) @skip
(call item: (ident) @call)
(import (binding (ident) @import))
(import) @statement

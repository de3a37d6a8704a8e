; Racket: definitions are lists; the first word tells which.
(list . (symbol) @_kind . (list . (symbol) @name)
  (#any-of? @_kind "define" "define/contract" "define/public" "define/private" "define/override" "define-inline")) @function
(list . (symbol) @_kind . (symbol) @name (list . (symbol) @_lambda)
  (#eq? @_kind "define") (#any-of? @_lambda "lambda" "λ")) @function
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "define" "define/contract" "define-values")) @variable
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "struct" "define-struct" "serializable-struct")) @struct
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "define-syntax" "define-syntax-parser")) @macro
(list . (symbol) @_kind . (list . (symbol) @name)
  (#any-of? @_kind "define-syntax" "define-syntax-rule" "define-simple-macro" "define-syntax-parse-rule")) @macro
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "module" "module*" "module+")) @module

; references
(comment) @skip
(block_comment) @skip
(string) @skip
(list . (symbol) @call (#not-match? @call "^(define|let|lambda$|if$|cond$|begin$|provide$|require$|struct$|module)"))
(list . (symbol) @_require (symbol) @import (#eq? @_require "require"))
(list . (symbol) @_require (#eq? @_require "require")) @statement

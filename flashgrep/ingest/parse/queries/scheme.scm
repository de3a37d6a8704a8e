; Scheme and Common Lisp: definitions are lists; the first word tells which.
(list . (symbol) @_kind . (list . (symbol) @name) (#any-of? @_kind "define" "define-public" "define*")) @function
(list . (symbol) @_kind . (symbol) @name (list . (symbol) @_lambda)
  (#eq? @_kind "define") (#any-of? @_lambda "lambda" "case-lambda")) @function
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "defun" "defgeneric" "deftest")) @function
(list . (symbol) @_kind . (symbol) @name (#eq? @_kind "defmethod")) @method
(list . (symbol) @_kind . (symbol) @name
  (#any-of? @_kind "define-syntax" "defmacro" "define-macro" "define-compiler-macro")) @macro
(list . (symbol) @_kind . (list . (symbol) @name) (#any-of? @_kind "define-syntax-rule" "define-macro")) @macro
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "defclass" "define-class" "define-condition")) @class
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "define-record-type" "defstruct")) @struct
(list . (symbol) @_kind . (list . (symbol) @name) (#eq? @_kind "defstruct")) @struct
(list . (symbol) @_kind . (symbol) @name (#eq? @_kind "deftype")) @type
(list . (symbol) @_kind . (symbol) @name (#eq? @_kind "defconstant")) @constant
(list . (symbol) @_kind . (_) @name (#any-of? @_kind "define-module" "define-library" "defpackage")) @module
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "define" "define-public" "defvar" "defparameter")) @variable

; references
(comment) @skip
(block_comment) @skip
(string) @skip
(list . (symbol) @call (#not-match? @call "^(def|let|lambda$|if$|cond$|begin$|import$|use-modules$)"))
(list . (symbol) @_import (#any-of? @_import "import" "use-modules" "require" "in-package")) @statement

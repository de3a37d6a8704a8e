; Scheme, Common Lisp and Emacs Lisp: definitions are lists; the first word tells which.
(list . (symbol) @_kind . (list . (symbol) @name) (#any-of? @_kind "define" "define-public" "define*")) @function
(list . (symbol) @_kind . (symbol) @name (list . (symbol) @_lambda)
  (#eq? @_kind "define") (#any-of? @_lambda "lambda" "case-lambda")) @function
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "defun" "defgeneric" "deftest"
  "cl-defun" "cl-defgeneric" "defsubst" "cl-defsubst" "define-inline" "define-minor-mode" "define-globalized-minor-mode"
  "define-derived-mode" "ert-deftest" "defadvice")) @function
(list . (symbol) @_kind . (symbol) @name (#match? @_kind "^[a-z]+-define-[a-z-]+$|^(cl-)?iter-defun$|^define-(advice|skeleton|setf-expander|inline)$|^defsetf$|^define-method-combination$")) @function
(list . (symbol) @_kind . (quote (symbol) @name) (#any-of? @_kind "defalias" "define-obsolete-function-alias")) @function
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "defmethod" "cl-defmethod")) @method
(list . (symbol) @_kind . (symbol) @name
  (#any-of? @_kind "define-syntax" "defmacro" "define-macro" "define-compiler-macro" "cl-defmacro")) @macro
(list . (symbol) @_kind . (list . (symbol) @name) (#any-of? @_kind "define-syntax-rule" "define-macro")) @macro
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "defclass" "define-class" "define-condition")) @class
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "define-record-type" "defstruct" "cl-defstruct")) @struct
(list . (symbol) @_kind . (list . (symbol) @name) (#any-of? @_kind "defstruct" "cl-defstruct")) @struct
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "deftype" "cl-deftype")) @type
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "defconstant" "defconst")) @constant
(list . (symbol) @_kind . (_) @name (#any-of? @_kind "define-module" "define-library" "defpackage")) @module
(list . (symbol) @_kind . (symbol) @name (#any-of? @_kind "define" "define-public" "defvar" "defparameter"
  "defvar-local" "defcustom" "defface" "defgroup" "deftheme" "define-error"
  "defvar-keymap" "define-symbol-macro" "define-widget")) @variable
(list . (symbol) @_kind . (quote (symbol) @name)
  (#any-of? @_kind "define-error" "defvaralias" "define-obsolete-variable-alias" "define-widget")) @variable
; What a project's own macros define: their names begin like those above. A list of arguments makes it a function.
(list . (symbol) @_kind . (symbol) @name . (list)
  (#match? @_kind "^([a-z.+-]+:+)?def(ine)?-?[a-z/:*]") (#not-match? @_kind "^(default|define-key|defer|definition|defined)")) @function
(list . (symbol) @_kind . (symbol) @name
  (#match? @_kind "^([a-z.+-]+:+)?def(ine)?-?[a-z/:*]") (#not-match? @_kind "^(default|define-key|defer|definition|defined)")) @variable

; references
(comment) @skip
(block_comment) @skip
(string) @skip
(list . (symbol) @call (#not-match? @call "^(def|cl-def|ert-deftest$|let|lambda$|if$|cond$|begin$|import$|use-modules$)"))
(list . (symbol) @_import (#any-of? @_import "import" "use-modules" "require" "in-package")) @statement

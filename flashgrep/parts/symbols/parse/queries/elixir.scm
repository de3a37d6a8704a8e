; Elixir: definitions are calls; the first word tells which.
(call target: (identifier) @_kind (arguments . (alias) @name)
  (#eq? @_kind "defmodule")) @module
(call target: (identifier) @_kind (arguments . (alias) @name)
  (#eq? @_kind "defprotocol")) @interface
; An implementation is named by its type or, inside that type's module, by its protocol.
(call target: (identifier) @_kind (arguments (keywords (pair value: [(alias) @name (list (alias) @name)])))
  (#eq? @_kind "defimpl")) @extension
(call target: (identifier) @_kind (arguments . (alias) @name .)
  (#eq? @_kind "defimpl")) @extension
(call target: (identifier) @_kind (arguments . [
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: (call target: (identifier) @name) operator: "when")
    (binary_operator left: (identifier) @name operator: "when")])
  (#any-of? @_kind "def" "defp" "defdelegate")) @function
(call target: (identifier) @_kind (arguments . [
    (binary_operator operator: _ @name)
    (unary_operator operator: _ @name)
    (binary_operator left: [(binary_operator operator: _ @name) (unary_operator operator: _ @name)] operator: "when")])
  (#not-match? @name "^(when|@|\\\\\\\\)$")
  (#any-of? @_kind "def" "defp" "defdelegate" "defmacro" "defmacrop")) @function
(call target: (identifier) @_kind (arguments . [
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: (call target: (identifier) @name) operator: "when")])
  (#any-of? @_kind "defmacro" "defmacrop" "defguard" "defguardp")) @macro
(unary_operator operator: "@" operand: (call target: (identifier) @_kind (arguments . (binary_operator left: [
    (identifier) @name
    (call target: (identifier) @name)])))
  (#any-of? @_kind "type" "typep" "opaque")) @type
(unary_operator operator: "@" operand: (call target: (identifier) @_kind (arguments . (binary_operator left: [
    (call target: (identifier) @name)
    (binary_operator left: [(call target: (identifier) @name) (binary_operator left: (call target: (identifier) @name))])])))
  (#any-of? @_kind "callback" "macrocallback")) @declaration.function

; references
(comment) @skip
(quoted_content) @skip
(call target: (identifier) @call (#not-match? @call "^(def|use$|import$|alias$|require$|quote$|unquote$)"))
(call target: (dot right: (identifier) @call))
(call target: (identifier) @_kind (arguments . (alias) @base) (#any-of? @_kind "use" "defimpl"))
(unary_operator operator: "@" operand: (call target: (identifier) @_kind (arguments . (alias) @base))
  (#eq? @_kind "behaviour"))
(call target: (identifier) @_kind (arguments . (alias) @import) (#any-of? @_kind "import" "alias" "require"))
(call target: (identifier) @_kind (arguments . (dot right: (tuple (alias) @import))) (#eq? @_kind "alias"))
(call target: (identifier) @_kind (#any-of? @_kind "import" "alias" "require")) @statement

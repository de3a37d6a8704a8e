; Clojure: definitions are lists; the first word tells which.
(list_lit . (sym_lit name: (_) @_kind) . (sym_lit name: (_) @name) (#eq? @_kind "ns")) @package
(list_lit . (sym_lit name: (_) @_kind) . (sym_lit name: (_) @name)
  (#any-of? @_kind "defn" "defn-" "defmulti" "deftest" "definline" "deftest-")) @function
(list_lit . (sym_lit name: (_) @_kind) . (sym_lit name: (_) @name) (#eq? @_kind "defmethod")) @method
(list_lit . (sym_lit name: (_) @_kind) . (sym_lit name: (_) @name) (#eq? @_kind "defmacro")) @macro
(list_lit . (sym_lit name: (_) @_kind) . (sym_lit name: (_) @name)
  (#any-of? @_kind "defprotocol" "definterface")) @interface
(list_lit . (sym_lit name: (_) @_kind) . (sym_lit name: (_) @name)
  (#any-of? @_kind "defrecord" "deftype" "defstruct")) @struct
(list_lit . (sym_lit name: (_) @_kind) . (sym_lit name: (_) @name)
  (#any-of? @_kind "def" "defonce" "s/def")) @variable
(list_lit . (sym_lit name: (_) @_protocol) . (sym_lit) (list_lit . (sym_lit name: (_) @name) . (vec_lit)) @declaration.method
  (#any-of? @_protocol "defprotocol" "definterface"))
(list_lit . (sym_lit name: (_) @_type) . (sym_lit) . (vec_lit) (list_lit . (sym_lit name: (_) @name) . (vec_lit)) @method
  (#any-of? @_type "defrecord" "deftype"))
(list_lit . (sym_lit name: (_) @_type) . (sym_lit) . (list_lit . (sym_lit name: (_) @name) . (vec_lit)) @method
  (#any-of? @_type "extend-type" "extend-protocol" "reify"))
(anon_fn_lit) @anonymous

; references
(comment) @skip
(str_lit) @skip
(regex_lit) @skip
(dis_expr) @skip
(list_lit . (sym_lit name: (_) @call) (#not-match? @call "^(def|ns$|comment$)"))
(list_lit . (kwd_lit name: (_) @_require) (vec_lit . (sym_lit name: (_) @import)) (#any-of? @_require "require" "use"))
(list_lit . (kwd_lit name: (_) @_require) (sym_lit name: (_) @import) (#any-of? @_require "require" "use" "import"))
(list_lit . (kwd_lit name: (_) @_import) (list_lit (sym_lit name: (_) @import)) (#eq? @_import "import"))
(list_lit . (kwd_lit name: (_) @_require) (vec_lit (kwd_lit name: (_) @_refer) . (vec_lit (sym_lit name: (_) @import)))
  (#any-of? @_require "require" "use") (#eq? @_refer "refer"))
(list_lit . (kwd_lit name: (_) @_require) (#any-of? @_require "require" "use" "import")) @statement

; HTML: definitions are headings, and elements with an id. Scripts have the grammar of their own language.
(element (start_tag (attribute (attribute_name) @_id [(attribute_value) @name (quoted_attribute_value (attribute_value) @name)]))
  (#match? @_id "^[iI][dD]$")) @object
(element (start_tag (tag_name) @_tag) (text) @name (#match? @_tag "^[hH][1-6]$")) @heading

; references
(comment) @skip

; XML: definitions are elements with an id or a name.
(element (STag (Attribute (Name) @_name (AttValue) @name)) (#any-of? @_name "id" "name" "xml:id" "android:id")) @object
(element (EmptyElemTag (Attribute (Name) @_name (AttValue) @name)) (#any-of? @_name "id" "name" "xml:id" "android:id")) @object

; references
(Comment) @skip

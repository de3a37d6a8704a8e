; JSON: definitions are the members of the outermost object and of the objects in it. Deeper ones are data.
(document (object (pair key: (string) @name value: (object)) @object))
(document (object (pair key: (string) @name) @property))
(document (object (pair value: (object (pair key: (string) @name value: (object)) @object))))
(document (object (pair value: (object (pair key: (string) @name) @property))))

; references
(comment) @skip

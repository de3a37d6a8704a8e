; YAML: definitions are the keys of a document, down to the third level. Deeper ones are data.
(document (block_node (block_mapping (block_mapping_pair key: (_) @name value: (block_node (block_mapping))) @object)))
(document (block_node (block_mapping (block_mapping_pair key: (_) @name) @property)))
(document (block_node (block_mapping (block_mapping_pair
  value: (block_node (block_mapping
    (block_mapping_pair key: (_) @name value: (block_node (block_mapping))) @object))))))
(document (block_node (block_mapping (block_mapping_pair
  value: (block_node (block_mapping (block_mapping_pair key: (_) @name) @property))))))
(document (block_node (block_mapping (block_mapping_pair
  value: (block_node (block_mapping (block_mapping_pair
    value: (block_node (block_mapping (block_mapping_pair key: (_) @name) @property)))))))))

; references
(comment) @skip
